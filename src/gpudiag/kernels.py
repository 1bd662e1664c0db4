"""Findings of profiled kernels, put where the timeline shows them: the share from one, the reason from the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import duckdb

from gpudiag.model import Row

Connection = duckdb.DuckDBPyConnection


def placed(con: Connection, rows: Sequence[Row]) -> list[Row]:
    """Rows of profiled kernels as rows of the loops in which these kernels run; all others as they are.

    A placed row names the kernel's launches (`gpu_ops`), and its `share` is that of the loop. A row whose launches an
    earlier one names already is left out: a rule that reads both the timeline and the profile says it once.
    """
    wanted = sorted({profile for row in rows if _profiled(row) for profile in row["profiles"]})
    found = _matches(con, wanted)
    seen: dict[object, set[int]] = defaultdict(set)
    result: list[Row] = []
    # Profiled rows come first: they know more of the same kernel.
    for row in sorted(rows, key=lambda row: not _profiled(row)):
        for one in _in_loops(row, found) if _profiled(row) else [row]:
            ops = one.get("gpu_ops")
            if isinstance(ops, list) and ops:
                known = seen[one.get("loop")]
                if known.issuperset(ops):
                    continue
                if _profiled(row):
                    known.update(ops)
            result.append(one)
    return result


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
