"""Owners of rows in tables that name no process, as small or hand-made exports have them."""

from __future__ import annotations

import duckdb

from gpudiag.ingest.sources.base import Source, ints


def owned(alone: int, source: Source, table: str, batch: str, column: str) -> str:
    """A batch whose rows name their process in `column`: a table without it belongs to the process of the others."""
    if column in source.columns(table):
        return batch
    return f"(select * replace ({alone << 24} as {column}) from {batch})"


_OWNERS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "globalTid", "CUPTI_ACTIVITY_KIND_KERNEL": "globalPid",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "globalPid", "CUPTI_ACTIVITY_KIND_MEMSET": "globalPid",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "globalPid", "NVTX_EVENTS": "globalTid",
}  # fmt: skip


def only_process(con: duckdb.DuckDBPyConnection, source: Source) -> int:
    """The key of the process whose rows tables hold that name none: the one that all others name.

    0, an unknown process, where they name none or several.
    """
    tables = {table: column for table, column in _OWNERS.items() if source.has(table)}
    named = {table: column for table, column in tables.items() if column in source.columns(table)}
    if len(named) == len(tables):
        return 0
    found = set[int | None]()
    for table, column in named.items():
        for batch in source.batches(table, ints(column)):
            found.update(key for (key,) in con.execute(f"select distinct {column} >> 24 from {batch}").fetchall())
    keys = [key for key in found if key is not None]
    return keys[0] if len(keys) == 1 else 0
