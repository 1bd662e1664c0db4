"""Rows as a template sees them: their first entries, columns by name, sums, and traced names made harmless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from gpudiag.model import Row
from gpudiag.text.format import clean

MAX_REACH = 50  # places, and entries of their lists, that a template can reach: no sentence tells more
MAX_COLUMNS = 200  # likewise, of a row or a structure in it


class Traced(str):
    """A text that came from the traced program; printed as a code span unless a filter wrote it otherwise."""

    __slots__ = ()


class Many(Sequence[Any]):
    """A list of which a template can reach the first entries, but which knows how many there are."""

    __slots__ = ("_all",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._all = values

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Any]:
        return map(_traced, self._all[:MAX_REACH])

    def __reversed__(self) -> Iterator[Any]:
        return map(_traced, self._all[:MAX_REACH][::-1])

    def __getitem__(self, index: Any) -> Any:
        found = self._all[:MAX_REACH][index]
        return [*map(_traced, found)] if isinstance(index, slice) else _traced(found)


class Fields(Mapping[str, Any]):
    """A row, or a structure in one, of which a template reads what it names: reading all could take forever."""

    __slots__ = ("_all",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._all = values

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        return islice(iter(self._all), MAX_COLUMNS)

    def __getitem__(self, name: str) -> Any:
        return _traced(self._all[name])


def totals(rows: Sequence[Row]) -> dict[str, float]:
    """The sum of each numeric column over rows; missing values count as nothing."""
    sums: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "loop":
                sums[name] = sums.get(name, 0) + value
    return sums


def _traced(value: Any) -> Any:
    if isinstance(value, str):
        return Traced(clean(value))
    if isinstance(value, Mapping):
        return Fields(value)
    return Many(value) if isinstance(value, list | tuple) else value
