"""Files of cProfile: where the host's Python code spends its time, function by function, into `cpu_function`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest.cprofile import stats
from gpudiag.ingest.cprofile.marshalled import NoProfile
from gpudiag.ingest.rows import append
from gpudiag.tracing import stage

_AGAIN = "record it again with `python -m cProfile -o FILE.pstats PROGRAM`"
_CAPABILITIES = {
    "cpu_functions": ("recorded", "a profile of cProfile"),
    "gpu_ops": ("not_recorded", "cProfile records Python functions, and nothing of the GPU"),
    "cuda_api": ("not_recorded", "cProfile records Python functions, and no CUDA call"),
}
_COLUMNS = ("id", "input", "file", "line", "function", "calls", "self_ns", "cumulative_ns", "callers", "callers_ns")


def read(file: Path, con: duckdb.DuckDBPyConnection, shown: Path, name: str) -> None:
    """Add one profile to the store. Raises GpudiagError where it is damaged, too large, or holds no function."""
    if file.stat().st_size > stats.MOST_BYTES:
        raise GpudiagError(
            f"{shown}: a profile of cProfile with more than {stats.MOST_BYTES >> 20} MiB is not read; profile a shorter"
            " part of the program."
        )
    with stage("read cProfile's file"):
        try:
            functions = stats.functions(file.read_bytes())
        except NoProfile as error:
            raise GpudiagError(f"{shown}: this profile of cProfile cannot be read: {error}; {_AGAIN}.") from None
    if not functions:
        raise GpudiagError(f"{shown}: this profile of cProfile holds no function; {_AGAIN}.")
    con.execute("begin")
    try:
        _fill(con, functions, name)
    except BaseException:
        con.execute("rollback")
        raise
    con.execute("commit")


def _fill(con: duckdb.DuckDBPyConnection, functions: Mapping[stats.Key, stats.Function], name: str) -> None:
    own, first = _next(con, "input"), _next(con, "cpu_function")
    ids = {key: number for number, key in enumerate(functions, first)}
    rows = []
    for (file, line, function), about in functions.items():
        callers = [(ids[key], round(own_s * 1e9)) for key, own_s in about.callers.items() if key in ids]
        rows.append(
            (
                ids[file, line, function], own, file, min(line, (1 << 31) - 1), function, about.calls,
                round(about.self_s * 1e9), round(about.cumulative_s * 1e9),
                [caller for caller, _ in callers], [ns for _, ns in callers],
            )
        )  # fmt: skip
    append(
        con, "input", ("id", "kind", "producer", "file", "clock_offset_ns"), [(own, "cprofile", "cProfile", name, None)]
    )
    append(con, "cpu_function", _COLUMNS, rows)
    listed = [(own, what, state, how) for what, (state, how) in _CAPABILITIES.items()]
    append(con, "capability", ("input", "name", "state", "how"), listed)


def _next(con: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(con.execute(f'select coalesce(max(id) + 1, 0) from "{table}"').fetchall()[0][0])
