"""Progress of a long read: the share done and the rate, said once a second."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

EVERY_S = 1.0


class Pace:
    """Tells how far a read has come. what: its name; whole: how much there is; unit: rows, or bytes where empty."""

    def __init__(
        self,
        say: Callable[[str], None],
        what: str,
        whole: float,
        unit: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._what, self._whole, self._unit, self._clock = say, what, whole, unit, clock
        self._began = self._last = clock()

    def reached(self, done: float, count: float | None = None) -> None:
        """Say it, unless that was said just now. count: rows or bytes so far, where `done` counts something else."""
        now = self._clock()
        if now - self._last < EVERY_S or self._whole <= 0:
            return
        self._last = now
        rate = (done if count is None else count) / (now - self._began)
        speed = f"{rate:,.0f} {self._unit}" if self._unit else f"{rate / 1e6:,.1f} MB"
        self._say(f"{self._what}: {100 * min(1.0, done / self._whole):.0f} %, {speed}/s")


class TablePace:
    """Tells how far all tables of a file have come. whole: asked for how far they reach, once something is said."""

    def __init__(
        self,
        say: Callable[[str], None],
        what: str,
        whole: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._what, self._whole, self._clock = say, what, whole, clock
        self._pace: Pace | None = None
        self._done: dict[str, float] = {}

    def reached(self, table: str, done: float) -> None:
        """Say it, unless that was said just now. done: how far this table is; read again, it counts once."""
        if self._pace is None:
            self._pace = Pace(self._say, self._what, self._whole(), "rows", self._clock)
        self._done[table] = max(done, self._done.get(table, 0.0))
        self._pace.reached(math.fsum(self._done.values()))
