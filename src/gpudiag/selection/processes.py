"""Selection of work by its owner: processes by id, name or rank, and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.selection.spec import Selection
from gpudiag.text.format import clean

Connection = duckdb.DuckDBPyConnection
NAMED = 8
"""What there is, in a sentence; the rest is counted."""
_Wanted = TypeVar("_Wanted", str, int)


class _Process(NamedTuple):
    id: int
    pid: int
    name: str
    rank: int | None


def choose(con: Connection, selection: Selection) -> None:
    """Fill the temporary tables `chosen_process` and `chosen_device`. Raises GpudiagError when nothing is left."""
    rows = con.execute("select id, pid, coalesce(name, ''), rank from process order by id").fetchall()
    processes = [_Process(*row) for row in rows]
    devices = dict(con.execute("select id, ordinal from device order by id").fetchall())
    using = con.execute("select distinct process, device from gpu_op").fetchall()
    chosen = {process.id for process in processes}
    if selection.processes:
        chosen &= _matching(
            "process", selection.processes, processes, lambda one, wanted: wanted in (str(one.pid), one.name), _process
        )
    if selection.ranks:
        chosen &= _ranked(selection.ranks, processes)
    kept = set(devices)
    if selection.devices:
        known = sorted({devices[device] for _, device in using if device in devices})
        for wanted in selection.devices:
            if wanted not in known:
                raise GpudiagError(f"No work of a GPU with the number {wanted} was recorded; {_there_is(known)}.")
        kept = {device for device, ordinal in devices.items() if ordinal in selection.devices}
        working = {process for process, _ in using}
        chosen &= {process for process, device in using if device in kept} | (chosen - working)
    used = {device for process, device in using if process in chosen and device in kept}
    if not used:
        raise GpudiagError("Nothing is left: no process that is selected ran anything on a GPU that is selected.")
    for table, ids in (("chosen_process", chosen), ("chosen_device", used if selection.owned else set(devices))):
        con.execute(f"create or replace temp table {table} as select unnest(?::integer[]) as id", [sorted(ids)])


def _matching(
    noun: str,
    values: Sequence[_Wanted],
    processes: Sequence[_Process],
    fits: Callable[[_Process, _Wanted], bool],
    summary: Callable[[_Process], str],
) -> set[int]:
    found: set[int] = set()
    for wanted in values:
        own = {one.id for one in processes if fits(one, wanted)}
        if not own:
            there = _there_is(dict.fromkeys(map(summary, processes)))
            raise GpudiagError(f"There is no {noun} {clean(str(wanted))!r} in what was recorded; {there}.")
        found |= own
    return found


def _ranked(ranks: Sequence[int], processes: Sequence[_Process]) -> set[int]:
    known = [one for one in processes if one.rank is not None]
    if not known:
        raise GpudiagError(
            "No process is known by a rank: file names tell it, such as report.rank1.nsys-rep; select by --process"
            f" instead, of which {_there_is(dict.fromkeys(map(_process, processes)))}."
        )
    return _matching("rank", ranks, known, lambda one, wanted: one.rank == wanted, lambda one: str(one.rank))


def _process(one: _Process) -> str:
    return f"{clean(one.name)} ({one.pid})" if clean(one.name) else str(one.pid)


def _there_is(items: Iterable[object]) -> str:
    found = [str(item) for item in items]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    if len(found) == 1:
        return f"the only one is {found[0]}"
    return f"there are {', '.join(found[:NAMED]) or 'none'}{more}"
