"""Reasons why one node of the graph waits for another, and the growing list of such edges."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from gpudiag.replay.trace import Floats, Ints

NEVER = -1e18  # the lag of an edge that holds nothing back


class EdgeKind(IntEnum):
    """Reason why one node waits for another."""

    HOST = 0  # the same thread, one after the other
    LAUNCH = 1  # an operation after the call that started it
    STREAM = 2  # operations of one stream
    LEGACY = 3  # the legacy default stream and the streams it orders
    EVENT = 4  # a recorded event
    INFERRED = 5  # began just when another stream's operation ended; no event was recorded
    WAIT = 6  # a call that returns when operations are done
    CROSS_THREAD = 7  # another thread did the work meanwhile
    ENGINE = 8  # copies of one direction share an engine
    SUPPLY = 9  # input that comes as long after the input before it as its supplier needs


class Edges:
    """Edges under construction: source and target nodes, lags (ns), kinds."""

    def __init__(self) -> None:
        self.parts: list[tuple[Ints, Ints, Floats, int]] = []

    def add(self, source: Ints, target: Ints, lag: Floats | float, kind: EdgeKind) -> None:
        self.parts.append((source, target, np.broadcast_to(np.asarray(lag, dtype=np.float64), source.shape), int(kind)))

    def arrays(self) -> tuple[Ints, Ints, Floats, Ints]:
        if not self.parts:
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, np.zeros(0), nothing
        kinds = np.concatenate([np.full(len(part[0]), part[3], dtype=np.int64) for part in self.parts])
        source, target, lag = (np.concatenate([part[i] for part in self.parts]) for i in range(3))
        return source, target, lag, kinds
