"""Arguments as people write them, read once: paths, thresholds, times."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from gpudiag.errors import GpudiagError
from gpudiag.selection.spec import Selection, select
from gpudiag.text import parse

AnyPath = str | os.PathLike[str]
Time = str | timedelta
Times = Time | Mapping[str, Time]
SHOWN = 60  # characters of a value in a sentence


def path_of(path: AnyPath) -> Path:
    return Path(os.path.expanduser(path))


def each(paths: AnyPath | Iterable[AnyPath]) -> Iterable[AnyPath]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths


def thresholds(overrides: Mapping[str, Any]) -> dict[str, float]:
    wrong = next((name for name, value in overrides.items() if not _is_number(value)), None)
    if wrong is not None:
        raise GpudiagError(f"{_shown(overrides[wrong])} is no number: {wrong} wants one, such as 0.3.")
    return {name: float(value) for name, value in overrides.items()}


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False


def _shown(value: object) -> str:
    """The value, short enough for a sentence; Python prints no number of thousands of digits."""
    try:
        text = repr(value)
    except ValueError:
        return "A value with too many digits"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def times(given: Times | None) -> dict[str, float]:
    """Loop name, or "" for the longest, → ns."""
    if given is None:
        return {}
    named = given if isinstance(given, Mapping) else {"": given}
    return {loop: _nanoseconds(time) for loop, time in named.items()}


def _nanoseconds(time: object) -> float:
    if isinstance(time, timedelta):
        return parse.nanoseconds(f"{time / timedelta(microseconds=1):f}us")
    if not isinstance(time, str):  # seconds or milliseconds? Either is plausible, and wrong by a thousand.
        raise GpudiagError(f"iteration_time={_shown(time)} has no unit: write it as '3.57ms', or give a timedelta.")
    return parse.nanoseconds(time)


def selection(within: object, nvtx: object, device: object, process: object, rank: object) -> Selection:
    """Raises GpudiagError where one is not of its kind."""
    if within is not None and not isinstance(within, str):
        raise GpudiagError(f"range={_shown(within)} has no unit: write it as '2s:5s'.")
    processes = [str(one) if _is_count(one) else one for one in _several(process)]
    return select(
        within,
        _all("nvtx", "a text", _several(nvtx), lambda one: isinstance(one, str)),
        _all("device", "a number from 0", _several(device), _is_count),
        _all("process", "an id or a name", processes, lambda one: isinstance(one, str)),
        _all("rank", "a number from 0", _several(rank), _is_count),
    )


def _several(given: object) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _all(name: str, wanted: str, values: list[Any], fits: Callable[[object], bool]) -> list[Any]:
    wrong = next((value for value in values if not fits(value)), None)
    if wrong is not None or None in values:
        raise GpudiagError(f"{name}={_shown(wrong)} is not {wanted}.")
    return values
