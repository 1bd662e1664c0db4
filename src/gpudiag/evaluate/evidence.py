"""Evidence that the captures recorded, with the library and the loops: what every rule of one evaluation shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

import duckdb

from gpudiag.evaluate import row_check
from gpudiag.library.catalogue import Capability, Library
from gpudiag.model import Row
from gpudiag.store import query

Connection = duckdb.DuckDBPyConnection

_STATES = ("recorded", "unknown", "not_recorded")
ITERATIONS = "iterations"  # the evidence of rules that say nothing of a run in which nothing repeats
CALLS, WORK = "cuda_api", "gpu_ops"  # where the first was recorded and the second was not, the driver kept it
LOG = "smi_log"  # the evidence of rules that need no timeline, only a log of nvidia-smi


@dataclass(frozen=True, slots=True)
class Known:
    """Data that every rule of one evaluation shares: the library, what the captures recorded, and the loops."""

    library: Library
    states: Mapping[str, str]
    loops: Mapping[int, Row]
    ends: Mapping[str, int] = field(default_factory=dict)  # list of ids → the first id that there is not
    by_torch: bool = False  # whether torch.profiler recorded every timeline
    silent: Set[str] = frozenset()  # rules whose query gives no rows, known without planning it

    @classmethod
    def of(cls, library: Library, con: Connection) -> Known:
        loops = {row["id"]: row for row in query.run(con, "select * from loop")}
        states = capability_states(con)
        if sources := {row["period_source"] for row in loops.values()}:  # found by us, and recorded by nobody
            states[ITERATIONS] = "not_recorded" if sources == {"unknown"} else "recorded"
        if con.execute("from smi_sample limit 1").fetchone():
            states |= dict(con.execute("select name, state from smi_evidence").fetchall())
        ends = row_check.id_ends(con, library.view_names) if library.user_codes else {}
        return cls(library, states, loops, ends, _by_torch(con))


def _by_torch(con: Connection) -> bool:
    row = con.execute("select bool_and(kind = 'torch') from input where kind in ('nsys', 'torch')").fetchone()
    return bool(row and row[0])


def flag(about: Capability | None, known: Known) -> str:
    """The option that records it, of the profiler that was used where that has one, or what to try where it was on."""
    if about is None:
        return ""
    lost = known.states.get(CALLS) == "recorded" and known.states.get(WORK) == "not_recorded"
    if about.lost and lost and not known.by_torch:
        return about.lost
    return about.torch if known.by_torch and about.torch else about.flag


def capability_states(con: Connection) -> dict[str, str]:
    """Capability → `recorded` when any input recorded it, else `unknown` when any cannot tell, else `not_recorded`."""
    states: dict[str, str] = {}
    for name, state in con.execute("select name, state from capability").fetchall():
        seen = (states.get(name, "not_recorded"), state if state in _STATES else "unknown")
        states[name] = min(seen, key=_STATES.index)
    return states


def state_of(names: Iterable[str], known: Known) -> str:
    """The best state of several kinds of evidence, any of which would do."""
    return min((known.states.get(name, "not_recorded") for name in names), key=_STATES.index)
