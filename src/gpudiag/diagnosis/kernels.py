"""Profiled kernels: what was measured of each, and where the timeline shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import duckdb

from gpudiag.diagnosis.validate_report import LARGEST, SMALLEST
from gpudiag.model import Kernel, Row, Stall
from gpudiag.text.format import clean, plural

Connection = duckdb.DuckDBPyConnection

MOST = 1_000
"""Kernels that a report describes, those with most time: each takes 1.6 kB of it."""


def placed(con: Connection, rows: Sequence[Row]) -> list[Row]:
    """Rows of profiled kernels as rows of the loops in which these kernels run; all others as they are.

    A placed row names the kernel's launches (`gpu_ops`), and its `share` is that of the loop. A rule that reads both
    the timeline and the profile says it once: its row of the timeline knows all launches, and takes over the profiles.
    """
    wanted = sorted({profile for row in rows if _profiled(row) for profile in row["profiles"]})
    found = _matches(con, wanted)
    rows = [sane(row) if _profiled(row) else row for row in rows]
    result: list[Row] = [row for row in rows if not _profiled(row)]
    known = {(row.get("loop"), op): at for at, row in enumerate(result) for op in row.get("gpu_ops") or ()}
    for row in filter(_profiled, rows):
        for one in _in_loops(row, found):
            keys = ((one.get("loop"), op) for op in one.get("gpu_ops") or ())
            same = {known[key] for key in keys if key in known}
            for at in sorted(same):
                result[at] = {**result[at], "profiles": [*(result[at].get("profiles") or ()), *row["profiles"]]}
            if not same:
                result.append(one)
    return result


_PARTS = ("share", "recoverable", "recoverable_low", "recoverable_high")


def sane(row: Row) -> Row:
    """The row with its parts between nothing and all: a page may hold counters that cannot be."""
    named = [name for name in row if name in _PARTS or name.endswith("_share")]
    parts = {name: row[name] for name in named if isinstance(row[name], int | float)}
    length = row.get("duration_ns")
    if isinstance(length, int | float) and not 0 <= length < float("inf"):
        parts["duration_ns"] = 0.0
    return {**row, **{name: min(1.0, max(0.0, part)) if part == part else 0.0 for name, part in parts.items()}}


def _profiled(row: Row) -> bool:
    return row.get("loop") is None and isinstance(row.get("profiles"), list)


def _matches(con: Connection, profiles: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Profile → the loops that run its kernel: loop, gpu_ops, share of the loop."""
    if not profiles:
        return {}
    rows = con.execute(
        "select profile, loop, gpu_ops, share from kernel_match"
        " where profile in (select unnest(?::integer[])) order by profile, loop",
        [list(profiles)],
    ).fetchall()
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for profile, loop, ops, share in rows:
        found[profile].append({"loop": loop, "gpu_ops": list(ops), "share": float(share)})
    return found


def _in_loops(row: Row, found: dict[int, list[dict[str, Any]]]) -> list[Row]:
    """The row once for each loop; as it is when the timeline shows none of its kernels."""
    loops: dict[int, dict[str, Any]] = {}
    for profile in row["profiles"]:
        for match in found.get(profile, ()):
            loops.setdefault(match["loop"], match)
    return [{**row, **match} for match in loops.values()] or [row]


_ORDER = "group by launch_shape, name, short, grid, block order by sum(duration_ns) desc nulls last, name, grid, block"
"""Launches that agree in all that a launch is made of are one kernel of the report."""


def groups(con: Connection) -> list[tuple[list[int], float]]:
    """Launches of each kernel in the order of `measured`, and its part of the time of all profiled launches."""
    rows = con.execute(
        f"select list(profile order by profile), sum(run_share) from kernel_facts {_ORDER}, launch_shape limit ?",
        [MOST],
    ).fetchall()
    return [(list(profiles), float(share or 0.0)) for profiles, share in rows]


def measured(con: Connection, settings: Mapping[str, float]) -> tuple[Kernel, ...]:
    """The kernels that Nsight Compute measured, those with most time first; medians over launches of one shape."""
    rows = con.execute(
        f"""
        select short, name, grid, block, count(*), coalesce(median(duration_ns), 0) / 1e6,
               coalesce(min(duration_ns), 0) / 1e6, coalesce(max(duration_ns), 0) / 1e6,
               list(profile order by profile), median(dram_pct), median(sm_pct),
               median(theoretical_occupancy_pct), median(achieved_occupancy_pct), median(registers),
               median(shared_own), median(waves), median(limit_registers), median(limit_shared),
               median(limit_warps), median(limit_blocks), median(warp_cycles_per_issue), max(sm_count),
               median(clock_hz) / 1e6, is_library_kernel(name)
        from kernel_facts {_ORDER}, launch_shape
        limit ?
        """,
        [MOST],
    ).fetchall()
    labels = ("dram_pct", "sm_pct", "theoretical_occupancy_pct", "achieved_occupancy_pct", "registers",
              "shared_own", "waves", "", "", "", "", "warp_cycles_per_issue", "sm_count", "clock_mhz")  # fmt: skip
    group = {profile: at for at, row in enumerate(rows) for profile in row[8]}
    roofs, stalls, shares = _roofs(con, group), _stalls(con, group, settings["min_stall_share"]), _shares(con, group)
    return tuple(
        Kernel(
            name=clean(row[0]), grid=row[2], block=row[3], launches=row[4], duration_ms=row[5],
            range_ms=(row[6], row[7]),
            facts={label: value for label, value in zip(labels, row[9:23], strict=True) if label and value is not None}
            | roofs.get(at, {})
            | ({"library": True} if row[23] else {}),
            stalls=stalls.get(at, ()), occupancy_limit=_occupancy_limit(*row[16:20]), share_of_loop=shares.get(at),
        )
        for at, row in enumerate(rows)
    )  # fmt: skip


def _roofs(con: Connection, group: Mapping[int, int]) -> dict[int, dict[str, Any]]:
    """Return the longest launch of each group and its place under its GPU's roofline limits. group: profile → its
    group.
    """
    cursor = con.execute(
        """
        select profile, "limit", busy_pct, floor_ns / 1e6 as floor_ms, intensity, ridge, "precision", active_share
        from kernel_roofline where busy_pct > 0 order by floor_ns desc, profile
        """
    )
    names = [column[0] for column in cursor.description or ()]
    found: dict[int, dict[str, Any]] = {}
    for row in cursor.fetchall():
        facts = {name: value for name, value in zip(names[1:], row[1:], strict=True) if value is not None}
        if facts.get("intensity") == 0:  # computes with integers, or not at all
            del facts["intensity"]
        measures = (facts.get(name, 1.0) for name in ("intensity", "ridge", "floor_ms"))
        if row[0] in group and all(SMALLEST <= value <= LARGEST for value in measures):  # else its counters are damaged
            found.setdefault(group[row[0]], facts)
    return found


def _stalls(con: Connection, group: Mapping[int, int], least: float) -> dict[int, tuple[Stall, ...]]:
    """Return the stall reasons of each group's warps, the longest first: medians over its launches."""
    rows = con.execute("select profile, stall, share, means, cure from kernel_wait order by profile, stall").fetchall()
    shares: dict[tuple[int, str], list[float]] = defaultdict(list)
    words = {}
    for profile, stall, share, means, cure in rows:
        if profile in group:
            shares[group[profile], stall].append(share)
            words[stall] = (means, cure)
    found: dict[int, list[Stall]] = defaultdict(list)
    for (at, name), parts in shares.items():
        if (part := median(parts)) >= least:
            found[at].append(Stall(name=name, share=part, means=words[name][0], cure=words[name][1]))
    return {at: tuple(sorted(stalls, key=lambda stall: (-stall.share, stall.name))) for at, stalls in found.items()}


def _shares(con: Connection, group: Mapping[int, int]) -> dict[int, float]:
    """Each group's part of the loop in which it takes most."""
    rows = con.execute("select profile, max(share) from kernel_match group by profile order by profile").fetchall()
    found: dict[int, float] = {}
    for profile, share in rows:
        if profile in group:
            found[group[profile]] = max(float(share), found.get(group[profile], 0.0))
    return found


def _occupancy_limit(
    registers: float | None, shared: float | None, warps: float | None, blocks: float | None
) -> str | None:
    """Name what limits the blocks on a multiprocessor; nothing where all its warps fit."""
    limits = {"registers": registers, "shared memory": shared, "blocks": blocks}
    known = {name: value for name, value in limits.items() if value is not None}
    if warps is None or not known or min(known.values()) >= warps:
        return None
    return min(known, key=lambda name: known[name])


def few_warps(con: Connection, loop: int, short: str, settings: Mapping[str, float]) -> str:
    """Say how few warps a loop's kernel keeps on each multiprocessor, in the size that takes most of its time.

    Nothing where they are many, or it is unknown, or where a library chose a part of what fits.
    """
    row = con.execute(
        "select warps, fitting_warps, library from kernel_filling where loop = ? and short = ?"
        " qualify share > ? * sum(share) over ()",
        [loop, short, settings["most_share"]],
    ).fetchone()
    if row is None or row[0] is None:
        return ""
    warps, fitting, library = row
    part = settings["few_filled"] * fitting if fitting and not library else 0
    if warps > max(settings["few_warps"], part) or (fitting is not None and warps >= fitting):
        return ""
    of = f", where {fitting:g} fit" if fitting else ""
    more = " (a launch of more blocks may be faster)" if warps > settings["few_warps"] else ""
    return f" and keeps {plural(warps, 'warp')} on each multiprocessor{of}{more}"
