"""Each limit of each budget, measured on the loops that it is about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from gpudiag.diagnosis import loop_names
from gpudiag.diagnosis.iteration_time_check import doubt
from gpudiag.gate.config import LONGEST, Budget, Config
from gpudiag.gate.result import BudgetCheck, Limit
from gpudiag.library.rule_file import near
from gpudiag.model import Loop, Report

SAME = 1e-6  # saved reports hold six digits: no difference below counts


class Measure(NamedTuple):
    limit: Limit
    unit: str
    at_least: bool
    of: Callable[[Loop], float]
    of_tree: bool = False


def _leaf(limit: Limit) -> Measure:
    """A leaf of the time tree; one without time is not in the report's."""

    def share(loop: Loop) -> float:
        return loop.tree[limit].share if limit in loop.tree else 0.0

    return Measure(limit, "share", limit == "computing", share, of_tree=True)


_SUMS = (
    Measure(
        "iteration_time", "ms", False, lambda loop: loop.given_ms or loop.iteration_ms_unprofiled or loop.iteration_ms
    ),
    Measure("launches", "launches", False, lambda loop: loop.launches),
    Measure("idle", "share", False, lambda loop: sum(idleness(loop).values())),
    Measure("exposed_copies", "share", False, lambda loop: loop.budget.get("exposed_copy", 0.0)),
    Measure("exposed_communication", "share", False, lambda loop: loop.budget.get("exposed_communication", 0.0)),
    Measure("compute", "share", True, lambda loop: loop.budget.get("compute", 0.0)),
)
_KNOWN = {measure.limit for measure in _SUMS}
MEASURES = (*_SUMS, *(_leaf(limit) for limit in get_args(Limit) if limit not in _KNOWN))


def check_budgets(config: Config, report: Report, settings: Mapping[str, float]) -> tuple[BudgetCheck, ...]:
    """Every limit, on every loop that it speaks of; one that no loop can answer is `unknown`."""
    checks: list[BudgetCheck] = []
    for name, loops in assigned(config.budgets, report.run.loops):
        limits = config.budgets[name]
        for measure in MEASURES:
            allowed = getattr(limits, measure.limit)
            if allowed is None:
                continue
            if loops:
                checks += [_measured(name, measure, allowed, loop, settings) for loop in loops]
            else:
                reason = _absent(name, config.budgets, report)
                checks.append(_check(name, measure, allowed, state="unknown", reason=reason))
    return tuple(checks)


def assigned(budgets: dict[str, Budget], loops: Sequence[Loop]) -> list[tuple[str, list[Loop]]]:
    """Each budget with its loops: a loop that is named, or the longest, is no business of a pattern any more."""
    named = {name: loop_names.called(name, loops, f"budgets.{json.dumps(name)}") for name in budgets}
    if LONGEST in budgets and not named[LONGEST]:
        named[LONGEST] = sorted(loops, key=lambda loop: -loop.share_of_span)[:1]
    taken = {loop.id for found in named.values() for loop in found}
    for name in budgets:
        if "*" in name and not named[name]:
            free = [loop for loop in loops if loop.id not in taken]
            named[name] = [loop for loop in free if _fits(name, loop_names.known(loop))]
            former = [loop for loop in free if loop.marker and _fits(name, (loop.marker,))]
            if former and not named[name]:
                loop_names.warn_former(name, former, f"budgets.{json.dumps(name)}")
                named[name] = former
            taken |= {loop.id for loop in named[name]}
    return list(named.items())


def idleness(loop: Loop) -> dict[str, float]:
    """The causes of idleness, largest first."""
    parts = {key: share for key, share in loop.budget.items() if key.startswith("idle_") and share > 0}
    return dict(sorted(parts.items(), key=lambda item: (-item[1], item[0])))


def _fits(pattern: str, names: Iterable[str]) -> bool:
    form = re.compile(".*".join(map(re.escape, re.sub(r"\*+", "*", pattern).split("*"))), re.DOTALL)
    return any(form.fullmatch(name) for name in names)


def _measured(name: str, measure: Measure, allowed: float, loop: Loop, settings: Mapping[str, float]) -> BudgetCheck:
    lacking = lacks(measure, loop, settings)
    if lacking:
        return _check(name, measure, allowed, state="unknown", loop=loop.name, reason=lacking)
    value = measure.of(loop)
    over = allowed - value if measure.at_least else value - allowed
    basis = None
    if measure.limit == "iteration_time":
        basis = "unprofiled" if loop.iteration_ms_unprofiled else "recorded"
    return _check(
        name,
        measure,
        allowed,
        state="broken" if over > SAME * max(allowed, value) else "kept",
        loop=loop.name,
        measured=value,
        basis=basis,
        parts=idleness(loop) if measure.limit == "idle" else {},
    )


def _check(name: str, measure: Measure, allowed: float, **more: object) -> BudgetCheck:
    facts = {"budget": name, "limit": measure.limit, "unit": measure.unit, "at_least": measure.at_least}
    return BudgetCheck.model_validate({**facts, "allowed": allowed, **more})


def lacks(measure: Measure, loop: Loop, settings: Mapping[str, float]) -> str:
    """Explain why the loop has no such figure, if it has none: a figure that was never taken must not read as 0."""
    if loop.source == "unknown" and measure.unit != "share":
        return "nothing repeats in the recording, so there is no iteration to measure"
    if measure.limit == "iteration_time" and loop.iteration_ms_unprofiled:
        return doubt(loop, loop.iteration_ms_unprofiled, settings)
    if measure.unit == "launches" and not (loop.launches or loop.kernels):
        return "the report does not count launches: make it anew from the capture"
    if measure.unit == "share" and not loop.budget:
        return "the report does not tell where the time of this loop goes"
    if measure.of_tree and not loop.tree:
        return "the report was saved before reports held the time tree: make it anew from the capture"
    return ""


def _absent(name: str, budgets: dict[str, Budget], report: Report) -> str:
    loops = report.run.loops
    if not loops and report.run.kernels:
        return "the report holds profiles of kernels only: a loop needs a timeline, so check one of Nsight Systems"
    if not loops:
        return f"no loop was found. {report.verdict.text}".strip()
    if "*" in name:
        others = " that has no budget of its own" if len(budgets) > 1 else ""
        return f"no loop{others} is called so; there {_listed(loops)}"
    names = dict.fromkeys(name for loop in loops for name in loop_names.known(loop))
    return f"no loop is called so{near(name, names).rstrip('?')}; there {_listed(loops)}"


def _listed(loops: Sequence[Loop]) -> str:
    names = list(dict.fromkeys(f"`{loop.name}`" for loop in loops))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ("is " if len(names) == 1 else "are ") + ", ".join(names[:5]) + more
