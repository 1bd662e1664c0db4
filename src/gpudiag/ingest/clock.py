"""The clocks of several inputs, each of which counts from a moment of its own."""

from __future__ import annotations

import duckdb


def offset(con: duckdb.DuckDBPyConnection, input_: int, began: int | None) -> int | None:
    """Return what to add to this input's times to get the first input's clock; None when a start time is unknown.

    began: the moment that this input's clock counts from, in ns since 1970, if the file states it.
    """
    con.execute("create temp table if not exists clock_start (input integer, began bigint)")
    con.execute("insert into clock_start values (?, ?)", [input_, began])
    if input_ == 0:
        return 0
    row = con.execute("select began from clock_start where input = 0").fetchone()
    return began - row[0] if began is not None and row and row[0] is not None else None
