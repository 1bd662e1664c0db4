"""Profiled launches that lack a counter which a rule needs, though the file holds it for others.

A cut page, a cell that is no number, or a launch measured with fewer sections must not make a rule look clear.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from gpudiag.model import Gap, Rule
from gpudiag.text.format import clean, code

HINT = "export the page again with `ncu --import REPORT.ncu-rep --csv --page raw`, or profile with --set full"
_NAMED = 3


def gaps(con: duckdb.DuckDBPyConnection, rule: Rule) -> tuple[tuple[Gap, ...], int]:
    """Launches without a counter that the rule needs, and how many launches there are. Raises duckdb.Error."""
    if not rule.needs:
        return (), 0
    wanted = [" or ".join(f'"{name}" is not null' for name in need.split("|")) for need in rule.needs]
    rows = con.execute(
        f"select profile, short, {', '.join(f'({one})' for one in wanted)} from kernel_facts order by profile"
    ).fetchall()
    found = [
        Gap(profile=profile, kernel=clean(short or ""), lacks=tuple(lacks))
        for profile, short, *known in rows
        if (lacks := [need.split("|")[0] for need, there in zip(rule.needs, known, strict=True) if not there])
    ]
    return tuple(found), len(rows)


def reason(found: Sequence[Gap]) -> str:
    """Say which kernels lack which counters."""
    names = list(dict.fromkeys(gap.kernel for gap in found))
    lacks = list(dict.fromkeys(name for gap in found for name in gap.lacks))
    who = "lack" if len(names) > 1 else "lacks"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = ", ".join(code(name) for name in names[:_NAMED])
    return f"{named}{more} {who} a counter that is needed, or it is no number there ({', '.join(lacks)})"


def of_all(found: Sequence[Gap]) -> str:
    """Return the counters that all kernels lack."""
    lacks = list(dict.fromkeys(name for gap in found for name in gap.lacks))
    return f"no profiled kernel has all counters that are needed, or they are no numbers ({', '.join(lacks)})"
