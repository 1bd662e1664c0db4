"""Short names of loops that were found by repetition: the user's function that each runs in, else `step`, `step 2`, …

The kernel by which a loop was recognised stays its marker: it is the same in another recording, but too long to read.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import count

import duckdb

from gpudiag.loops.iteration_bounds import Settings

Connection = duckdb.DuckDBPyConnection

_UNKNOWN = "step"
_OF_CODE = ("<", "(")  # how `<module>` and `<lambda>` begin, which name no function


def give(con: Connection, settings: Settings) -> None:
    """Name each loop that was found by repetition, the longest first, so that no two of the report are called alike."""
    found = con.execute("select id from loop where period_source = 'period' order by share_of_span desc, id").fetchall()
    if not found:
        return
    taken = {name for (name,) in con.execute("select name from loop where period_source <> 'period'").fetchall()}
    functions = _functions(con, settings)
    for (loop,) in found:
        name = _free(functions.get(loop, _UNKNOWN), taken)
        taken.add(name)
        con.execute("update loop set name = ? where id = ?", [name, loop])


def _free(name: str, taken: Set[str]) -> str:
    """The name, with a number where another loop is called so."""
    numbered = (name if number == 1 else f"{name} {number}" for number in count(1))
    return next(one for one in numbered if one not in taken)


def _functions(con: Connection, settings: Settings) -> dict[int, str]:
    """Loop → the innermost function of the user's that Python samples show to hold it: `train_step (train.py)`.

    It is on the stack as long as the loop runs, and next to never while it does not.
    """
    rows = con.execute(
        """
        with held as (
            select i.loop, t.sampled as thread, min(i.start) as start, max(i."end") as "end"
            from iteration i join loop l on l.id = i.loop join sampled_threads() t using (loop, process, thread)
            where l.period_source = 'period' group by i.loop, t.sampled
        ), sampled as (
            select h.loop, y.id, y.time >= h.start and y.time < h."end" as inside, user_frames(y.frames) as frames
            from py_sample y join held h using (thread)
        ), total as (
            select loop, count(*) as samples from sampled where inside group by loop having samples >= $samples
        ), framed as (
            select loop, id, inside, unnest(frames) as frame, unnest(range(len(frames))) as depth from sampled
        ), placed as (
            select loop, id, inside, frame.function as function, frame.file as file, min(depth) as depth
            from framed where frame.function is not null group by all
        )
        select p.loop, p.function, p.file from placed p join total t using (loop)
        group by p.loop, p.function, p.file, t.samples
        having count(*) filter (inside) >= $share * t.samples and count(*) filter (inside) >= $share * count(*)
        order by p.loop, avg(depth) filter (inside), p.function, p.file
        """,
        {"samples": settings["loop_name_samples"], "share": settings["loop_name_share"]},
    ).fetchall()
    named: dict[int, str] = {}
    for loop, function, file in rows:
        if not function.startswith(_OF_CODE):
            named.setdefault(loop, f"{function} ({file.replace(chr(92), '/').rsplit('/', 1)[-1]})")
    return named
