"""The events of a trace as one temporary table: categories by one name in all versions, times as integer ns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest.sources.base import quoted
from gpudiag.ingest.torch import document

EVENTS = "torch_event"
_LARGEST = 64 << 20
"""Bytes of one event: names of kernels have kilobytes, lists of ranks perhaps a megabyte."""

# As PyTorch 1.8 and 1.9 called them.
_FORMER = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
}

ARGUMENTS = {
    "correlation": "correlation", "stream": "stream", "device": "device", "context": "context", "bytes": "bytes",
    "grid": "grid", "block": "block", "registers": "registers per thread", "shared": "shared memory",
    "graph_node": "graph node id", "dims": "Input Dims", "python_id": "Python id", "python_parent": "Python parent id",
    "stack": "Call stack", "sequence": "Sequence number", "label": "name", "sync_kind": "cuda_sync_kind",
    "record_stream": "wait_on_stream", "record_correlation": "wait_on_cuda_event_record_corr_id",
    "collective": "Collective name", "elements_in": "In msg nelems", "elements_out": "Out msg nelems",
    "dtype": "dtype", "group_size": "Group size", "group_name": "Process Group Name",
}  # fmt: skip
"""Column → key of `args`. As text: a version may write a number, a text, or what is no value at all."""

_NUMBERS = ("correlation", "device", "context", "bytes", "python_id", "python_parent", "record_correlation", "sequence")


def load(con: duckdb.DuckDBPyConnection, parts: Sequence[Path], shown: Path) -> None:
    """Fill the table from the lists that were cut out. Raises GpudiagError where that is no JSON even when repaired."""
    try:
        _load(con, parts)
        return
    except duckdb.InvalidInputException:
        for part in parts:
            document.repair(part)
    try:
        _load(con, parts)
    except duckdb.InvalidInputException as error:
        where = _reason(str(error)) or "its events are no JSON"
        raise GpudiagError(f"{shown}: the trace is damaged ({where[:120]}); copy it again, or record anew.") from None


def _reason(said: str) -> str:
    """Return DuckDB's reason without the file, whose name the reader of a message does not know."""
    found = re.search(r"(?:Malformed JSON|JSON transform error) in file \"[^\"]*\",?(.*)", said)
    return found[1].rpartition("message:")[2].strip(" .:") if found else ""


def _load(con: duckdb.DuckDBPyConnection, parts: Sequence[Path]) -> None:
    keys = ", ".join(f'"{key}" VARCHAR' for key in ARGUMENTS.values())
    columns = "ph:'VARCHAR', cat:'VARCHAR', name:'VARCHAR', pid:'VARCHAR', tid:'VARCHAR', ts:'VARCHAR', dur:'DOUBLE',"
    columns += f" args:'STRUCT({keys})'"
    paths = ", ".join(quoted(str(part)) for part in parts)
    former = " ".join(f"when '{old}' then '{new}'" for old, new in _FORMER.items())
    taken = ", ".join(
        (f'try_cast(args."{key}" as bigint) as {name}' if name in _NUMBERS else f'args."{key}" as {name}')
        for name, key in ARGUMENTS.items()
    )
    con.execute(
        f"""
        create or replace temp table {EVENTS} as
        with event as (
            select ph, case cat {former} else cat end as cat, name, pid, tid, {taken},
                   {nanoseconds("ts")} as start, try_cast(round(dur * 1000) as bigint) as length
            from read_json([{paths}], format = 'array', columns = {{{columns}}}, maximum_object_size = {_LARGEST})
            where ph = 'X' and cat is not null and cat <> 'gpu_user_annotation' or ph = 'M'
        )
        select * exclude (cat, length),
               -- until 1.10 what the program annotated was an operator too
               case when cat = 'cpu_op' and {_ANNOTATION} then 'user_annotation' else cat end as cat,
               case when length >= 0 then start + length end as "end"
        from event
        """
    )


def nanoseconds(column: str) -> str:
    """SQL for integer nanoseconds of a decimal text in µs. A floating-point number would lose some."""
    whole, part = f"split_part({column}, '.', 1)", f"rpad(left(split_part({column}, '.', 2), 3), 3, '0')"
    return (
        f"case when {column} like '%e%' then try_cast(round(try_cast({column} as decimal(28, 9)) * 1000) as bigint)"
        f" else try_cast({whole} as bigint) * 1000 + try_cast({part} as bigint) end"
    )


_ANNOTATION = (
    "(regexp_matches(name, '^(ProfilerStep|Optimizer\\.(step|zero_grad)|enumerate\\(DataLoader\\))#')"
    " or starts_with(name, 'nccl:') or starts_with(name, '## '))"
)
