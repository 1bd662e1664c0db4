"""Edges that hold the host: waits for operations, work handed to another thread, input that comes at its own pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpudiag.replay.edges.stream_edges import by_stream
from gpudiag.replay.trace import CALL_KINDS, Calls, Floats, Ints, LoopTrace


@dataclass(frozen=True, slots=True)
class HandOver:
    """Per call: the other thread's call whose end it took over from (-1: none), and its own time around that (ns)."""

    call: Ints
    before: Floats
    after: Floats


def cross_thread_dependencies(calls: Calls, settings: Mapping[str, float]) -> HandOver:
    """Segments in which another thread of the process worked instead: a backward pass, a loader's thread."""
    n = len(calls)
    result = HandOver(np.full(n, -1, dtype=np.int64), np.zeros(n), np.zeros(n))
    if len(np.unique(calls.thread)) < 2:
        return result
    order = np.argsort(calls.start, kind="stable")
    starts, threads = calls.start[order], calls.thread[order]
    long = np.flatnonzero(calls.start - calls.segment_start >= settings["replay_hand_over_ns"])
    lows, highs = (np.searchsorted(starts, times[long]).tolist() for times in (calls.segment_start, calls.start))
    for i, low, high in zip(long.tolist(), lows, highs, strict=True):
        inside = order[low:high][threads[low:high] != calls.thread[i]]
        inside = inside[calls.end[inside] <= calls.start[i]]
        if not len(inside):
            continue
        last = inside[np.argmax(calls.end[inside])]
        begin, end, whole = calls.start[inside[0]], calls.end[last], calls.start[i] - calls.segment_start[i]
        asleep = calls.asleep[i] >= settings["replay_asleep_share"] * whole
        if asleep or end - begin >= settings["replay_hand_over_share"] * whole:
            result.call[i], result.after[i] = last, calls.start[i] - end
            awake = whole - calls.asleep[i] if asleep else whole
            result.before[i] = min(begin - calls.segment_start[i], awake)
    return result


class Waits:
    """Operations that each call waited for, and the moment when what is left of the call began."""

    def __init__(self, record: LoopTrace, settings: Mapping[str, float]) -> None:
        self.calls, self.ops = record.calls, record.ops
        self.begins = self.calls.start.copy()
        self.on_copy = np.zeros(len(self.calls), dtype=bool)
        self._pairs: list[tuple[int, int]] = []
        if len(self.calls) and len(self.ops):
            self._find(settings)
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        self.call, self.op = pairs[:, 0], pairs[:, 1]

    def _find(self, settings: Mapping[str, float]) -> None:
        calls, ops = self.calls, self.ops
        known = ops.call >= 0
        launched_at = np.where(known, calls.start[np.maximum(ops.call, 0)], ops.start)
        by_launch = np.argsort(launched_at, kind="stable")
        streams = by_stream(ops.stream, by_launch)
        stream_times = {s: launched_at[own] for s, own in streams.items()}
        ends, by_end = np.sort(ops.end), np.argsort(ops.end, kind="stable")
        own_ops: dict[int, int] = {}
        for index in np.flatnonzero(known & (ops.kind == 2)):
            own_ops[int(ops.call[index])] = int(index)
        sync, copy, free = (CALL_KINDS.index(kind) for kind in ("sync", "copy", "free"))
        usual = float(np.median(calls.end - calls.start))
        slow = max(settings["replay_blocked_ns"], settings["replay_blocked_times"] * usual)

        def last_of(stream: int, time: float) -> int:
            position = int(np.searchsorted(stream_times[stream], time, "left")) - 1
            return int(streams[stream][position]) if position >= 0 else -1

        for i in range(len(calls)):
            kind, start, end = calls.kind[i], calls.start[i], calls.end[i]
            if kind == sync:
                target = int(calls.waits_on[i])
                if target >= 0:
                    found = [last_of(target, start)] if target in streams else []
                elif target == -3:
                    found = self._ended_just_before(end, start, ends, by_end)
                else:
                    found = [last_of(s, start) for s in streams]
                self._wait(i, found, must_bind=target == -3)
            elif kind == copy and i in own_ops and end >= ops.end[own_ops[i]] > start:
                self.on_copy[i] = True
                self._wait(i, [own_ops[i]])
            elif kind == free:
                self._wait(i, [last_of(s, start) for s in streams], must_bind=True)
            elif end - start >= slow and kind != CALL_KINDS.index("load"):
                found = self._ended_just_before(end, start, ends, by_end)
                if found and end - ops.end[found[0]] <= slow and launched_at[found[0]] < start:
                    self._wait(i, found)

    def _ended_just_before(self, end: float, start: float, ends: Floats, by_end: Ints) -> list[int]:
        position = int(np.searchsorted(ends, end, "right")) - 1
        return [int(by_end[position])] if position >= 0 and ends[position] >= start else []

    def _wait(self, call: int, ops: list[int], *, must_bind: bool = False) -> None:
        """Let the call wait for those operations; one that ended after the call was not waited for."""
        chosen = [op for op in ops if op >= 0 and self.ops.end[op] <= self.calls.end[call]]
        latest = max((float(self.ops.end[op]) for op in chosen), default=-np.inf)
        if must_bind and latest <= self.calls.start[call]:
            return
        self._pairs += [(call, op) for op in chosen]
        self.begins[call] = max(self.begins[call], latest)


@dataclass(frozen=True, slots=True)
class Supply:
    """Calls whose host segment waits for paced input, and of each the call whose segment waited before it."""

    follows: Ints
    after: Ints


def supply(record: LoopTrace, handed: Ints, settings: Mapping[str, float]) -> Supply:
    """Return the segments that wait for a supplier who sets the loop's pace.

    A thread that sleeps while it fetches input waits for a loader. Where that happens in most iterations and the GPU
    idles meanwhile, the loader sets the pace: each batch then comes as long after the one before it as was recorded,
    whatever becomes of the rest. Any other such wait (the start of an epoch, the end of a loader, the latency of a
    queue) takes as long as it took, from wherever the thread begins it, so that one wait cannot hold a loop in place.

    handed: calls whose segment is explained by another thread's CUDA calls.
    """
    calls = record.calls
    waits = np.setdiff1d(np.flatnonzero(_sleeps_for_input(calls, settings)), handed)
    nothing = np.zeros(0, dtype=np.int64)
    if not len(waits):
        return Supply(nothing, nothing)
    iterations = len(np.unique(record.iteration_of_call[waits]))
    idle = float(_idle_within(record, calls.segment_start[waits], calls.start[waits]).sum())
    often = iterations >= max(2.0, settings["replay_supply_part"] * record.window.iterations)
    if not often or idle < settings["replay_supply_share"] * record.length:
        return Supply(nothing, nothing)
    same = calls.thread[waits[1:]] == calls.thread[waits[:-1]]
    return Supply(waits[1:][same], waits[:-1][same])


def _sleeps_for_input(calls: Calls, settings: Mapping[str, float]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    whole = calls.start - calls.segment_start
    asleep = calls.waited >= settings["replay_asleep_share"] * whole
    return calls.fetches & asleep & (whole >= settings["host_work_ns"])


def _idle_within(record: LoopTrace, begin: Floats, end: Floats) -> Floats:
    """Return the part of each interval in which no operation of the window ran (ns)."""
    starts, ends = record.ops.start, np.maximum.accumulate(record.ops.end) if len(record.ops) else record.ops.end
    reached = np.concatenate([[-np.inf], ends[:-1]])[: len(starts)]
    busy = np.concatenate([[0.0], np.cumsum(np.maximum(ends - np.maximum(starts, reached), 0))])

    def until(time: Floats) -> Floats:
        last = np.searchsorted(starts, time, "right")
        over = np.where(last > 0, np.maximum(ends[np.maximum(last - 1, 0)] - time, 0), 0) if len(starts) else 0.0
        return np.asarray(busy[last] - over, dtype=np.float64)

    return np.asarray((end - begin) - (until(end) - until(begin)), dtype=np.float64)
