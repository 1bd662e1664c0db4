"""The time tree of each loop: its leaves, what findings account for in each, and what the host did in the rest.

A finding claims the time that its own rows account for: idle intervals, copies and collectives that its fix could
remove, or where its rows give only a share, that much of the leaves that its rule explains. Of each interval the
largest claim counts, so that no leaf is claimed for more than it holds. Computing is never unclaimed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import duckdb

from gpudiag.diagnosis.callers import unexplained
from gpudiag.model import Finding, Fired, Leaf, Loop, Outcome, Rule, Unclaimed
from gpudiag.model.vocabulary import LEAVES, Also
from gpudiag.replay import bounds
from gpudiag.replay.edits import registry
from gpudiag.replay.priced_finding import PricedFinding
from gpudiag.text.format import code, pct

Connection = duckdb.DuckDBPyConnection

COMPUTING = "computing"


def with_trees(
    con: Connection,
    loops: Sequence[Loop],
    items: Iterable[PricedFinding],
    settings: Mapping[str, float],
    noted_shares: Iterable[tuple[int, str, float]] = (),
) -> tuple[Loop, ...]:
    """Return the loops with their trees.

    items: all findings of the loops, priced, small ones too; noted_shares: what notes account for (`explained`).
    """
    by_loop: dict[int, list[PricedFinding]] = defaultdict(list)
    for item in items:
        if item.loop:
            by_loop[item.loop.id].append(item)
    leaves: dict[int, dict[str, int]] = defaultdict(dict)
    for loop, leaf, ns in con.execute("select loop, leaf, ns from loop_tree").fetchall():
        leaves[loop][leaf] = ns
    noted: dict[int, dict[str, float]] = defaultdict(dict)
    for loop, leaf, share in noted_shares:
        noted[loop][leaf] = noted[loop].get(leaf, 0.0) + share
    return tuple(_with_tree(con, loop, leaves[loop.id], by_loop[loop.id], noted[loop.id], settings) for loop in loops)


def explained(outcomes: Iterable[Outcome]) -> tuple[tuple[int, str, float], ...]:
    """Return what notes account for: loop, leaf of its time tree, part of the loop's time (0 to 1)."""
    return tuple(
        (row["loop"], one.rule.explains, float(share))
        for one in outcomes
        if isinstance(one, Fired) and one.rule.explains
        for row in one.rows
        if row.get("loop") is not None
        and isinstance(share := row.get("explained_share", row.get("share")), int | float)
    )


def _with_tree(
    con: Connection,
    loop: Loop,
    times: Mapping[str, int],
    items: Sequence[PricedFinding],
    noted: Mapping[str, float],
    settings: Mapping[str, float],
) -> Loop:
    total = sum(times.values())
    if not total:
        return loop
    merged: bounds.Claim = {}
    for item in items:
        bounds.merge(merged, _own(item))
    claimed = _claimed(con, loop.id, merged, items, times)
    for leaf, share in noted.items():
        if leaf in times:
            claimed[leaf] = min(times[leaf], claimed.get(leaf, 0.0) + share * total)
    tree = {
        leaf: Leaf(share=times[leaf] / total, claimed=claimed.get(leaf, 0.0) / total)
        for leaf in LEAVES
        if leaf in times
    }
    rest = {leaf: part.share - part.claimed for leaf, part in tree.items() if leaf != COMPUTING}
    found: tuple[Unclaimed, ...] = ()
    if sum(rest.values()) > settings["min_unclaimed_share"]:
        large = sorted((leaf for leaf in rest if rest[leaf] >= settings["min_unclaimed_leaf"]), key=lambda x: -rest[x])
        found = tuple(unexplained.observed(con, loop, leaf, rest[leaf], settings) for leaf in large)
        about = _about(con, loop.id, items, {leaf: settings["most_share"] * rest[leaf] * total for leaf in large})
        found = tuple(one.model_copy(update={"about": tuple(about[one.leaf])}) for one in found)
    return loop.model_copy(update={"tree": tree, "unclaimed": found})


def _own(item: PricedFinding) -> bounds.Claim:
    """Claim of single intervals and operations (ns): at most what the fix saves, alone or after others."""
    own = {key: ns for key, ns in item.claim.items() if key != bounds.WHOLE}
    whole, most = math.fsum(own.values()), item.total_ns
    if item.price is not None:
        most *= max(1 - item.price.low, item.last)
    return {key: ns * most / whole for key, ns in own.items()} if whole > most else own


def _claimed(
    con: Connection, loop: int, merged: bounds.Claim, items: Sequence[PricedFinding], times: Mapping[str, int]
) -> dict[str, float]:
    """Return the time that findings account for, by leaf (ns), never more than the leaf holds."""
    found = {leaf: min(ns, times.get(leaf, 0)) for leaf, ns in by_leaf(con, loop, merged).items()}
    for item in items:
        left = item.claim.get(bounds.WHOLE, 0.0) or (_untested_share(item) * item.total_ns if item.untested else 0.0)
        for leaf, words in LEAVES.items():
            if left > 0 and leaf in times and leaf != COMPUTING and words.part in item.rule.budget:
                taken = min(left, times[leaf] - found.get(leaf, 0.0))
                found[leaf] = found.get(leaf, 0.0) + taken
                left -= taken
    return found


def _about(
    con: Connection, loop: int, items: Sequence[PricedFinding], least: Mapping[str, float]
) -> dict[str, list[str]]:
    """Return the findings whose rows hold at least so much of a leaf (ns), by leaf, whatever their fixes save of it."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in items if least else ():
        for leaf, ns in by_leaf(con, loop, item.claim).items():
            if ns >= least.get(leaf, math.inf):
                found[leaf].append(item.rule.code)
    return found


def by_leaf(con: Connection, loop: int, claim: bounds.Claim) -> dict[str, float]:
    """Return the time of a claim in each leaf of a loop's tree (ns). The claim stays in table `claim`."""
    bounds.keep(con, claim)
    rows = con.execute(
        f"""
        with numbered as ({bounds.NUMBERED})
        select i.leaf, sum(cast(round(least(c.ns, i."end" - i.start)) as bigint)) from numbered c
        join idle_interval i on c.id = i.idle_interval where c.of = 'interval' and i.loop = $1 group by i.leaf
        union all
        select 'exposed_' || w.class, sum(cast(round(c.ns) as bigint)) from numbered c
        join loop_gpu_op w on c.id = w.op where c.of = 'op' and w.loop = $1 and w.class <> 'compute' group by w.class
        """,
        [loop],
    ).fetchall()
    return {leaf: float(ns) for leaf, ns in rows}


def placed(
    con: Connection,
    findings: Iterable[Finding],
    items: Mapping[tuple[str, int | None], PricedFinding],
    loops: Iterable[Loop],
    least: float,
) -> list[Finding]:
    """The findings, each with the leaf that holds most of its claim, and why it saves more than its leaves hold.

    least: the part of the loop's time by which it must save more, for a reason to be worth words.
    """
    trees = {loop.id: loop.tree for loop in loops}
    found = []
    for finding in findings:
        item, update = items.get((finding.code, finding.gain.loop)), {}
        if item and item.loop:
            claimed = by_leaf(con, item.loop.id, item.claim)
            if (leaf := _main_leaf(claimed, item)) in trees[item.loop.id]:
                held = max(trees[item.loop.id][leaf].share, math.fsum(claimed.values()) / item.total_ns)
                update = {
                    "leaf": leaf,
                    "also": _also(item, held + least) if finding.gain.share - held > least else None,
                }
        found.append(finding.model_copy(update=update))
    return found


def _main_leaf(claimed: Mapping[str, float], item: PricedFinding) -> str:
    """Return the leaf in which at least half of a finding's claim lies; nothing where none does."""
    leaf = max(claimed, key=lambda name: (claimed[name], name), default="")
    return leaf if leaf and 2 * claimed[leaf] >= math.fsum(item.claim.values()) else ""


def _also(item: PricedFinding, share: float) -> Also | None:
    """Return why a fix saves more than this share: nothing else, but that profiling makes an iteration longer, where
    the report says by how much; of a job of ranks their waits; else what its last edit that says so shortens.
    """
    if item.price and item.loop and item.loop.usual_ms < item.loop.iteration_ms and 1 - item.price.recorded <= share:
        return "profiler"
    if item.model and item.model.meet:
        return "ranks"
    price = item.rule.price
    edits = registry.of(price.expected or price.best) if price else ()
    return next((edit.also for edit in reversed(edits) if edit.also), None)


def graph_share(con: Connection, loop: Loop) -> float:
    """Return the part of a loop in which graphs run whose kernels were not recorded one by one."""
    row = con.execute(
        "select sum(w.duration_ns) / any_value(f.total_ns) from loop_gpu_op w join loop_facts f using (loop)"
        " where w.kind = 'graph' and w.loop = ?",
        [loop.id],
    ).fetchone()
    return float(row[0]) if row and row[0] is not None else 0.0


def undecided(rule: Rule, loops: Sequence[Loop], graphs: Mapping[int, float]) -> str | None:
    """Return why a rule that did not fire may still be right: time of its kind that no finding explains; else None.

    graphs: the part of each loop, by its id, that runs in graphs whose kernels were not recorded, where it is large.
    """
    if set(rule.budget) == {"compute"} and graphs:
        loop = next(loop for loop in loops if loop.id == max(graphs, key=lambda id_: (graphs[id_], -id_)))
        return f"{pct(graphs[loop.id])} of {code(loop.name)} runs inside CUDA graphs, whose kernels were not recorded"
    left = [
        (one.share, loop, LEAVES[one.leaf].does)
        for loop in loops
        for one in loop.unclaimed
        if LEAVES[one.leaf].part in rule.budget
    ]
    if not left:
        return None
    share, loop, does = max(left, key=lambda one: one[0])
    part = f"{pct(share)} of {'the recorded work' if loop.source == 'unknown' else code(loop.name)}"
    return f"for {part} the GPU {does}, which no finding explains, so nothing of that kind can be ruled out"


def _untested_share(item: PricedFinding) -> float:
    """The part of the loop that the rows of a finding without a price are about."""
    return min(1.0, sum(float(share) for row in item.rows if isinstance(share := row.get("share"), int | float)))
