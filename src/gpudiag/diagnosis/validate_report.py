"""Checks of a saved report's figures: the code that divides, scales or draws them later relies on these."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

LARGEST = 1e15  # no time in ms, size in bytes or count in a report comes near
LARGEST_NS = 1e6 * LARGEST
SMALLEST = 1e-9  # of what others are divided by: a femtosecond
DEEPEST = 40  # levels of lists and objects
SLACK = 0.01  # parts that add up to 1, rounded
SHARES = {"coverage", "share", "share_of_span", "share_of_loop"}


def misfit(content: Any) -> str | None:
    """The first figure that cannot be, as `run.loops.0.iterations`; None where all can."""
    return next((place for place, bad in _doubts(content) if bad), None)


def _doubts(content: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for place, value in _figures(content, "", 0):
        key = place.rpartition(".")[2]
        yield place, not (math.isfinite(value) and abs(value) <= (LARGEST_NS if key.endswith("_ns") else LARGEST))
        yield place, (key in SHARES or key.endswith("_share")) and not -SLACK <= value <= 1 + SLACK
        yield place, key.endswith("_ms") and value < 0
    run = content.get("run")
    run = run if isinstance(run, dict) else {}
    for place, value in _figures(run, "run.", 0):
        yield place, value < 0
    for at, loop in _objects(run.get("loops")):
        yield f"run.loops.{at}.iterations", _number(loop.get("iterations"), 1.0) < 1
        for key in ("iteration_ms", "iteration_ms_unprofiled", "given_ms", "given_iterations"):
            yield f"run.loops.{at}.{key}", _number(loop.get(key), 1.0) < SMALLEST
        budget = loop.get("budget")
        parts = {kind: _number(part, 0.0) for kind, part in (budget if isinstance(budget, dict) else {}).items()}
        for kind, part in parts.items():
            yield f"run.loops.{at}.budget.{kind}", part > 1 + SLACK
        yield f"run.loops.{at}.budget", bool(parts) and abs(sum(parts.values()) - 1) > SLACK
        for number, part in enumerate(_list(loop.get("deciles_ms"))):
            yield f"run.loops.{at}.deciles_ms.{number}", _tiny(part)
    together = sum(_number(loop.get("share_of_span"), 0.0) for _, loop in _objects(run.get("loops")))
    yield "run.loops.share_of_span", together > 1 + SLACK
    for at, kernel in _objects(run.get("kernels")):
        yield f"run.kernels.{at}.duration_ms", _tiny(kernel.get("duration_ms"))
        for number, end in enumerate(_list(kernel.get("range_ms"))):
            yield f"run.kernels.{at}.range_ms.{number}", _tiny(end)
        facts = kernel.get("facts")
        for key in ("ridge", "intensity", "floor_ms"):
            yield f"run.kernels.{at}.facts.{key}", _tiny(facts.get(key) if isinstance(facts, dict) else None)


def _figures(value: Any, place: str, depth: int) -> Iterator[tuple[str, float]]:
    """Every number below with its place; a nesting that is too deep counts as one that cannot be."""
    if depth > DEEPEST:
        yield place.rstrip("."), math.inf
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _figures(item, f"{place}{key}.", depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _figures(item, f"{place}{number}.", depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place.rstrip("."), value if isinstance(value, float) or abs(value) <= LARGEST_NS else math.inf


def _objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((at, item) for at, item in enumerate(_list(value)) if isinstance(item, dict))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) <= LARGEST else otherwise


def _tiny(value: Any) -> bool:
    """Neither nothing nor anything that can be divided by."""
    return 0 < _number(value, 0.0) < SMALLEST
