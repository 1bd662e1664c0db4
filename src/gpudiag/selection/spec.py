"""The selected part of a capture: a time, NVTX ranges, devices, processes, ranks. All that is given must hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from gpudiag.errors import GpudiagError
from gpudiag.text.parse import UNITS, duration

LATEST = 30 * 24 * 3600 * UNITS["s"]
"""No capture lasts a month: a time above is a slip of the unit."""
_SHOWN = 60  # characters of a value in a sentence
_Value = TypeVar("_Value", str, int)
_LIKE = "such as 2s:5s, 250ms: or :5s (ns, us, ms or s)"


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of the captures; the default is all of them. Times are ns since the beginning of the capture."""

    start: int | None = None
    end: int | None = None
    nvtx: tuple[str, ...] = ()
    """Messages of NVTX ranges, or their labels in the report, each with `@domain` if it must be that one."""
    devices: tuple[int, ...] = ()
    processes: tuple[str, ...] = ()
    """Process ids, or names of executables."""
    ranks: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self.timed or self.owned

    @property
    def ranged(self) -> bool:
        return self.start is not None or self.end is not None

    @property
    def timed(self) -> bool:
        """Return whether it selects by time, and not only by owner."""
        return self.ranged or bool(self.nvtx)

    @property
    def owned(self) -> bool:
        """Return whether it leaves out processes or devices."""
        return bool(self.devices or self.processes or self.ranks)

    @property
    def options(self) -> list[str]:
        """The words that ask the command line for the same."""
        words = ["--range", time_range(self.start, self.end)] if self.ranged else []
        given = (("--nvtx", self.nvtx), ("--device", self.devices), ("--process", self.processes))
        for option, values in (*given, ("--rank", self.ranks)):
            words += [word for value in values for word in (option, str(value))]
        return words


ALL = Selection()


def select(
    within: str | None = None,
    nvtx: Iterable[str] = (),
    devices: Iterable[int] = (),
    processes: Iterable[str] = (),
    ranks: Iterable[int] = (),
) -> Selection:
    """A selection from what somebody wrote. Raises GpudiagError."""
    start, end = times(within) if within is not None else (None, None)
    return Selection(start, end, _once(nvtx), _once(devices), _once(processes), _once(ranks))


def _once(values: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(values))


def times(text: str) -> tuple[int | None, int | None]:
    """`2s:5s`, `2s:` and `:5s` as ns from and to. Raises GpudiagError."""
    shown = repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
    parts = text.split(":")
    if len(parts) != 2 or not any(parts):
        raise GpudiagError(f"{shown} is no range: write START:END, {_LIKE}.")
    start, end = (_moment(part, shown) if part else None for part in parts)
    if end is not None and end <= (start or 0):
        raise GpudiagError(f"{shown} ends {'before' if end < (start or 0) else 'where'} it begins: write START:END.")
    return start, end


def _moment(text: str, shown: str) -> int:
    moment = 0.0 if text == "0" else duration(text)
    if moment is None:
        raise GpudiagError(f"{shown} is no range: write START:END, {_LIKE}.")
    if moment > LATEST:
        raise GpudiagError(f"{shown} reaches beyond a month: is the unit right?")
    return round(moment)


def time_range(start: int | None, end: int | None) -> str:
    """The inverse of `times`, in the longest unit that needs no fraction."""
    return ":".join("" if moment is None else _written(moment) for moment in (start, end))


def _written(moment: int) -> str:
    for unit in ("s", "ms", "us"):
        if moment % int(UNITS[unit]) == 0:
            return f"{moment // int(UNITS[unit])}{unit}"
    return f"{moment}ns"
