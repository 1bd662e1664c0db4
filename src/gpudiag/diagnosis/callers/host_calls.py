"""CUDA calls of a recording without GPU work: all that can be said where the driver reported none."""

from __future__ import annotations

import duckdb

from gpudiag.text.format import code, dur, plural

Connection = duckdb.DuckDBPyConnection

_LONGEST = """
with taken as (
  select
    n.text,
    count(*) as calls,
    sum(c."end" - c.start) as total_ns
  from api_call c
  join name n on n.id = c.name
  where c.parent is null
  group by n.text
)
select text, calls, total_ns
from taken
where total_ns > 0 and total_ns >= $least * (select sum(total_ns) from taken)
order by
  total_ns desc,
  text
limit 3
"""


def longest(con: Connection, least: float) -> str:
    """A sentence on the calls that took longest, over all threads. least: the share of all that a call must have."""
    calls = con.execute(_LONGEST, {"least": least}).fetchall()
    if not calls:
        return ""
    listed = ", ".join(f"{code(name)} {dur(total)} ({plural(count, 'call')})" for name, count, total in calls)
    return f" Of the host's CUDA calls these took longest: {listed}."
