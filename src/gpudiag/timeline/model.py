"""Model of a drawn timeline for any page: tracks of slices, times in ns from its start. No text is escaped yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Name(NamedTuple):
    """Name of a slice: a short form to write on it, and the full one."""

    short: str
    full: str


class Slice(NamedTuple):
    """Something that lasted. `name` is a position in the timeline's names, -1 for none.

    Where `many` is more than one, that many neighbours are drawn as one: `ns` is their summed time and `name` the
    longest of them.
    """

    start: int
    ns: int
    kind: str
    name: int
    many: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a timeline. group: finding, phase, nvtx, host, gpu or stream; rank: the finding that it marks."""

    key: str
    group: str
    label: str
    slices: tuple[Slice, ...]
    depth: int = 0
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A stretch of time. iteration: the number of the iteration it shows, None for the whole run."""

    key: str
    start: int  # ns on the capture's clock
    ns: int
    rows: tuple[Row, ...]
    names: tuple[Name, ...]
    loop: int | None = None
    iteration: int | None = None
    remarks: tuple[str, ...] = ()  # what was drawn together, and what is not drawn

    @property
    def marked(self) -> frozenset[int]:
        """The findings that have a mark on it."""
        return frozenset(row.rank for row in self.rows if row.rank is not None and row.slices)


@dataclass(frozen=True, slots=True)
class FixPreview:
    """An iteration before and after the first fix, by replay; rows are empty where only the lengths are known."""

    rank: int
    before_ms: float
    after_ms: float
    low_ms: float
    high_ms: float
    before: tuple[Row, ...] = ()
    after: tuple[Row, ...] = ()
    names: tuple[Name, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is drawn. loops: their timelines; overview: the whole run; preview: the first fix."""

    loops: tuple[Timeline, ...] = ()
    overview: Timeline | None = None
    preview: FixPreview | None = None
