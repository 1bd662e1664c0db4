"""Choice of the iterations that figures are of: a typical stretch of a long loop, without the first use of code."""

from __future__ import annotations

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Bounds, Found, Ints, Iterations, Settings
from gpudiag.loops.period.further import loading

Connection = duckdb.DuckDBPyConnection

_STRETCHES = 64  # of a long loop so many are compared
_QUANTILES = np.linspace(0.1, 0.9, 17)


def part(con: Connection, loop: Found, settings: Settings) -> float:
    """The part of a loop's iterations worth analysing: all, unless its operations pass the setting max_ops."""
    operations = 0
    for run in loop.runs:
        row = con.execute(
            "select count(*) from gpu_op where process = ? and start >= ? and start < ?",
            [run.process, int(run.bounds[0, 0]), int(run.bounds[-1, 1])],
        ).fetchall()[0]
        operations += int(row[0])
    return min(1.0, settings["max_ops"] / max(operations, 1))


def typical_stretch(loop: Found, warm: int, count: int, settings: Settings) -> int:
    """The first of `count` iterations in a row whose times are spread most like those of all after warm-up: the
    quantiles but for the longest and the shortest tenth, and the mean, in which what happens now and then shows.

    Work may vary from one iteration to the next, and from the first thousand to the last. It lies in the later half:
    earlier iterations may meet a shape for the first time. All processes have these iterations.
    """
    until = min((len(run.bounds) for run in loop.runs), default=0)
    since = max(warm, min(until // 2, until - count))
    if until - since <= count:
        return until - count
    lengths = np.mean([run.bounds[:until, 1] - run.bounds[:until, 0] for run in loop.runs], axis=0)
    firsts = np.unique(np.linspace(since, until - count, _STRETCHES).astype(np.int64))[::-1]
    wanted = _spread(lengths[warm:])
    off = np.array([np.abs(_spread(lengths[first : first + count]) - wanted).sum() for first in firsts])
    alike = off <= off.min() + settings["stretch_alike"] * wanted.sum()
    return int(firsts[np.argmax(alike)])  # the last of them


def _spread(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quantiles of these lengths, and their mean with the weight of all quantiles."""
    return np.append(np.quantile(lengths, _QUANTILES), lengths.mean() * len(_QUANTILES))


def leave_out(con: Connection, loop: int, run: Iterations, settings: Settings) -> None:
    """Take the iterations of one process that load code for kernels not launched before out of the steady state.

    The CUDA driver loads a kernel's code when it is first launched, so a warm run goes on warming up wherever it does
    something new: the first validation, checkpoint or log line. Counted with the others, one such iteration makes a
    loop look as if it loaded code, or waited, all the time.

    Only those that are longer than usual for it, and only where they are few: a program that loads code again and again
    is slow for that reason, and a rule says so. A kernel that a library builds for another shape may have a name that
    was launched before; one iteration that takes nearly all of the time that such building costs is left out as well.
    """
    if not len(loads := loading(con, run.process)):
        return
    steady = con.execute(
        'select ordinal, "end" - start from iteration'
        " where loop = ? and process = ? and in_steady_state and analysed order by ordinal",
        [loop, run.process],
    ).fetchnumpy()
    ordinal, length = (np.asarray(values, dtype=np.int64) for values in steady.values())
    if not len(ordinal):
        return
    holding = _holding(run.bounds, loads)
    new = np.intersect1d(holding, _holding(run.bounds, _first_launches(con, run.process)))
    slow = length >= settings["first_use_times"] * np.median(length)
    first_uses = ordinal[np.isin(ordinal, new) & slow]
    once = np.flatnonzero(np.isin(ordinal, holding) & slow)
    longer = length[once] - np.median(length)
    if not len(first_uses) and len(once) and longer.max() >= settings["first_use_once"] * longer.sum():
        longest = once[np.argmax(longer)]
        if _loading_time(con, run, ordinal[longest]) >= settings["first_use_part"] * longer.max():
            first_uses = ordinal[[longest]]
    if len(first_uses) <= settings["first_use_share"] * len(ordinal):
        con.execute(
            "update iteration set in_steady_state = false"
            " where loop = ? and process = ? and ordinal in (select unnest(?::integer[]))",
            [loop, run.process, first_uses.tolist()],
        )


def _holding(bounds: Bounds, moments: Ints) -> NDArray[np.int64]:
    """Return the numbers of the iterations in which the host was at these moments (ns)."""
    number = np.searchsorted(bounds[:, 0], moments, "right") - 1
    inside = (number >= 0) & (moments < bounds[np.maximum(number, 0), 1])
    return np.unique(number[inside])


def _loading_time(con: Connection, run: Iterations, ordinal: np.int64) -> float:
    """Return how long calls that load or build code take in an iteration, with the host's time before each (ns).

    Small calls come between the phases of a compiler, such as asking for an attribute: they, and what precedes them,
    belong to the load that follows before the thread submits work.
    """
    start, end = run.bounds[ordinal].tolist()
    row = con.execute(
        """
        with called as (
            select a.thread, api_kind(n.text) as kind,
                a."end" - coalesce(lag(a."end") over (w), $start) as ns,
                count(case when kind not in ('load', 'context', 'other') then 1 end) over (w) as stretch
            from api_call a join name n on n.id = a.name
            where a.process = $process and a.start >= $start and a.start < $end
            window w as (partition by a.thread order by a.start)
        )
        select coalesce(sum(ns), 0) from called where kind in ('load', 'context', 'other')
            and (thread, stretch) in (select thread, stretch from called where kind = 'load')
        """,
        {"process": run.process, "start": start, "end": end},
    ).fetchone()
    return float(row[0]) if row else 0.0


def _first_launches(con: Connection, process: int) -> Ints:
    """Return when each kernel of a process was launched for the first time (ns)."""
    rows = con.execute(
        "select min(coalesce(a.start, o.start)) as first from gpu_op o left join api_call a on a.id = o.api_call"
        " where o.process = ? and o.kind = 'kernel' group by o.name",
        [process],
    ).fetchnumpy()
    return np.asarray(rows["first"], dtype=np.int64)
