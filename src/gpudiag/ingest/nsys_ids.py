"""Dense identifiers for what an Nsight Systems file numbers in its own ways: texts, processes, threads, GPUs, streams.

Rows arrive in batches, and each batch may name something new. `discover_*` adds what is new, in an order that depends
on the file alone, and the temporary `nsys_*` tables map the file's numbers to the store's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from gpudiag.ingest import nsys_gpus
from gpudiag.ingest.nsys_enums import Enums
from gpudiag.ingest.source import Source, ints, texts

_PID = "(({key}) & 16777215)"
"""A process key is a global id without its lowest 24 bits, which hold the thread; the next 24 are the process id."""

_MAPS = """
create or replace temp table nsys_string (id bigint, text varchar);
create or replace temp table nsys_api_name (string bigint, id integer);
create or replace temp table nsys_kernel_name (string bigint, short bigint, id integer);
create or replace temp table nsys_text_name (string bigint, id integer);
create or replace temp table nsys_process (key bigint, pid bigint, id integer);
create or replace temp table nsys_thread (tid bigint, process_key bigint, process integer, id integer);
create or replace temp table nsys_process_name (key bigint, name varchar);
create or replace temp table nsys_thread_name (tid bigint, name varchar);
"""

TEMPORARY = (
    "nsys_string", "nsys_api_name", "nsys_kernel_name", "nsys_text_name", "nsys_process", "nsys_thread",
    "nsys_process_name", "nsys_thread_name", *nsys_gpus.TEMPORARY,
)  # fmt: skip


@dataclass(frozen=True)
class Capture:
    """One Nsight Systems file on its way into the store."""

    con: duckdb.DuckDBPyConnection
    source: Source
    input: int
    enums: Enums
    first: Mapping[str, int]
    """The identifiers this input begins with, by table."""

    def next_id(self, table: str) -> int:
        """The first identifier that the table does not use yet."""
        return next_id(self.con, table)


def next_id(con: duckdb.DuckDBPyConnection, table: str) -> int:
    """One more than the table's largest id."""
    return int(con.execute(f'select coalesce(max(id) + 1, 0) from "{table}"').fetchall()[0][0])


def prepare(capture: Capture) -> None:
    """Create the maps and read the small tables that name things."""
    con, source = capture.con, capture.source
    con.execute(_MAPS)
    for batch in source.batches("StringIds", ints("id") | texts("value")):
        con.execute(f"insert into nsys_string select id, any_value(value) from {batch} group by id")
    for batch in source.batches("PROCESSES", ints("globalPid") | texts("name")):
        con.execute(
            "insert into nsys_process_name select globalPid >> 24, regexp_extract(any_value(name), '[^/\\\\]*$')"
            f" from {batch} where globalPid is not null group by 1"
        )
    for batch in source.batches("ThreadNames", ints("nameId", "priority", "globalTid")):
        con.execute(
            "insert into nsys_thread_name select globalTid, arg_max(text, coalesce(priority, 0))"
            f" from {batch} join nsys_string on nsys_string.id = nameId group by globalTid"
        )
    nsys_gpus.prepare(con, source, capture.enums)


def numbered(capture: Capture, table: str, valid: str) -> str:
    """The rows of a relation with the next ids of a table, in file order."""
    start = capture.next_id(table)
    rows, low, high = capture.con.execute(f"select count(*), min(rid), max(rid) from {valid}").fetchall()[0]
    # Sorting a million row numbers costs as much as inserting them, and most batches have no gap.
    dense = rows and high - low + 1 == rows
    place = f"rid - {low}" if dense else "row_number() over (order by rid) - 1"
    return f"(select *, ({start} + {place})::integer as id from {valid})"


def intern(capture: Capture, texts_query: str) -> None:
    """Add the (text, short) pairs of a query to `name` that are not there yet."""
    capture.con.execute(
        f"insert into name select {capture.next_id('name')} - 1 + row_number() over (order by text, short), text, short"
        f" from (select distinct text, short from ({texts_query}) where text is not null)"
        " anti join name using (text, short)"
    )


API_NAME = r"regexp_replace(text, '(_v\d+)?(_ptsz|_ptds)?(_v\d+)?$', '')"
"""A function without the suffixes that tell its ABI version and its default stream."""


def discover_api_names(capture: Capture, batch: str, column: str) -> None:
    """Intern the API functions that a batch's string ids name."""
    new = (
        f"select string, coalesce({API_NAME}, 'unknown') as text from (select distinct {column} as string from {batch}"
        f" where {column} not in (select string from nsys_api_name where string is not null))"
        " left join nsys_string on nsys_string.id = string"
    )
    intern(capture, f"select text, text as short from ({new})")
    capture.con.execute(
        f"insert into nsys_api_name select string, any_value(name.id) from ({new}) new"
        " join name on name.text = new.text and name.short = new.text group by string"
    )


def discover_kernel_names(capture: Capture, batch: str) -> None:
    """Intern the kernels of a batch: full text and short form."""
    capture.con.execute(
        "create or replace temp table nsys_new as select k.string, k.short,"
        " coalesce(f.text, s.text, '(unnamed kernel)') as full_text,"
        " coalesce(s.text, f.text, '(unnamed kernel)') as short_text"
        f" from (select distinct demangledName as string, shortName as short from {batch}) k"
        " left join nsys_string f on f.id = k.string left join nsys_string s on s.id = k.short"
        " where not exists (from nsys_kernel_name known where known.string is not distinct from k.string"
        " and known.short is not distinct from k.short)"
    )
    intern(capture, "select full_text as text, short_text as short from nsys_new")
    capture.con.execute(
        "insert into nsys_kernel_name select string, nsys_new.short, any_value(name.id) from nsys_new"
        " join name on name.text = full_text and name.short = short_text group by all"
    )
    capture.con.execute("drop table nsys_new")


def discover_text_names(capture: Capture, batch: str, column: str) -> None:
    """Intern other texts that a batch names by string id: NVTX messages, operating system functions."""
    new = (
        f"select string, text from (select distinct {column} as string from {batch}"
        f" where {column} not in (select string from nsys_text_name)) join nsys_string on nsys_string.id = string"
    )
    intern(capture, f"select text, text as short from ({new})")
    capture.con.execute(
        f"insert into nsys_text_name select string, any_value(name.id) from ({new}) new"
        " join name on name.text = new.text and name.short = new.text group by string"
    )


def discover_processes(capture: Capture, keys_query: str) -> None:
    """Add the processes whose keys (`globalPid >> 24`) a query gives."""
    con, first = capture.con, capture.next_id("process")
    con.execute(
        f"insert into nsys_process select key, {_PID.format(key='key')},"
        f" {first} - 1 + row_number() over (order by key)"
        f" from (select distinct key from ({keys_query}) where key is not null"
        " and key not in (select key from nsys_process))"
    )
    con.execute(
        f"insert into process by name select id, {capture.input} as input, pid, nullif(name, '') as name"
        f" from nsys_process left join nsys_process_name using (key) where id >= {first} order by id"
    )


def discover_threads(capture: Capture, batch: str, column: str = "globalTid") -> None:
    """Add the threads of a batch, and their processes."""
    discover_processes(capture, f"select distinct {column} >> 24 as key from {batch}")
    con, first = capture.con, capture.next_id("thread")
    con.execute(
        "insert into nsys_thread select tid, p.key, p.id,"
        f" {first} - 1 + row_number() over (order by tid)"
        f" from (select distinct {column} as tid from {batch} where {column} is not null"
        f" and {column} not in (select tid from nsys_thread)) join nsys_process p on p.key = tid >> 24"
    )
    con.execute(
        "insert into thread by name select id, process, tid & 16777215 as tid, name"
        f" from nsys_thread left join nsys_thread_name using (tid) where id >= {first} order by id"
    )


def discover_streams(capture: Capture, batch: str) -> None:
    """Add the devices and streams of a relation with deviceId, contextId, streamId and the process key `key`."""
    discover_processes(capture, f"select distinct key from {batch}")
    keys = (
        "select key, contextId as context, streamId as number, min(deviceId) as cuda"
        f" from {batch} where streamId is not null group by all"
    )
    first_device, first_stream = capture.next_id("device"), capture.next_id("stream")
    nsys_gpus.discover_devices(capture.con, capture.input, keys, first_device)
    nsys_gpus.discover_streams(capture.con, keys, first_stream)
