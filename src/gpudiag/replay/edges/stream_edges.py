"""Edges that held a GPU operation back: its launch, its stream, its copy engine, other streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gpudiag.replay.edges.edge_list import EdgeKind, Edges
from gpudiag.replay.trace import CALL_KINDS, Floats, Ints, LoopTrace, Ops

_GRAPH_LAUNCH = CALL_KINDS.index("graph_launch")


def order_ops(
    edges: Edges, record: LoopTrace, enter: Ints, leave: Ints, op: Ints, settings: Mapping[str, float]
) -> Ints:
    """Edges that hold operations back; returns those that nothing recorded holds back.

    The edge that explains an operation's start keeps its recorded lag; the others get the shortest usual one. A lag
    longer than settings.replay_latency_ns explains nothing: then the operation waited for another stream, or for
    something that was not recorded, and the replay starts it early. A graph is handed over as its launch returns.
    """
    calls, ops = record.calls, record.ops
    m = len(ops)
    if not m:
        return np.zeros(0, dtype=np.int64)
    known = np.flatnonzero(ops.call >= 0)
    before = _previous_in_stream(ops)
    longest = settings["replay_latency_ns"]
    launch_lag, stream_lag = np.full(m, np.inf), np.full(m, np.inf)
    whole = _after_return(record)
    launch_lag[known] = ops.start[known] - np.where(whole, calls.end, calls.start)[ops.call[known]]
    behind = np.flatnonzero(before >= 0)
    stream_lag[behind] = np.maximum(ops.start[behind] - ops.end[before[behind]], 0)
    others, other_lag = _across_streams(record, launch_lag, stream_lag, settings)
    nearest = np.minimum(np.minimum(launch_lag, stream_lag), other_lag)
    own_copy = np.zeros(m, dtype=bool)
    own_copy[known] = (ops.kind[known] == 2) & (calls.end[ops.call[known]] >= ops.end[known])
    queued = behind[stream_lag[behind] <= settings["idle_noise_ns"]]
    gap = float(np.median(stream_lag[queued])) if len(queued) else settings["replay_stream_gap_ns"]
    prompt = known[launch_lag[known] <= np.minimum(longest, launch_lag[known].min(initial=np.inf) + longest)]
    usual = float(np.percentile(launch_lag[prompt], 5)) if len(prompt) else settings["replay_launch_lag_ns"]
    limit = np.where(own_copy, np.inf, longest)

    by_launch = launch_lag <= nearest
    lag = np.where(by_launch, np.minimum(launch_lag, limit), np.minimum(launch_lag, usual))
    edges.add(np.where(whole, leave, enter)[ops.call[known]], op[known], np.maximum(lag[known], 0), EdgeKind.LAUNCH)
    by_stream = stream_lag <= nearest
    lag = np.where(by_stream, np.minimum(stream_lag, longest), np.minimum(stream_lag, gap))
    edges.add(op[before[behind]], op[behind], lag[behind], EdgeKind.STREAM)
    for kind, source, target, recorded_lag in others:
        binds = recorded_lag <= nearest[target]
        edges.add(op[source], op[target], np.where(binds, recorded_lag, np.minimum(recorded_lag, gap)), kind)
    return np.flatnonzero((before < 0) & (ops.call < 0))


def _after_return(record: LoopTrace) -> NDArray[np.bool_]:
    """Return of each call whether it launched a graph of which nothing began before the call returned."""
    calls, ops = record.calls, record.ops
    begins = np.full(len(calls), np.inf)
    np.minimum.at(begins, ops.call[ops.call >= 0], ops.start[ops.call >= 0])
    return np.asarray((calls.kind == _GRAPH_LAUNCH) & (begins >= calls.end) & np.isfinite(begins))


def _previous_in_stream(ops: Ops) -> Ints:
    before = np.full(len(ops), -1, dtype=np.int64)
    order = np.lexsort((np.arange(len(ops)), ops.stream))
    same = ops.stream[order][1:] == ops.stream[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def by_stream(stream: Ints, order: Ints) -> dict[int, Ints]:
    """Stream → which operations it ran, as they stand in `order`."""
    sorted_ = order[np.argsort(stream[order], kind="stable")]
    cuts = np.flatnonzero(np.diff(stream[sorted_])) + 1
    return {int(stream[own[0]]): own for own in np.split(sorted_, cuts) if len(own)}


def _ordered(ops: Ops, streams: Mapping[int, Ints]) -> dict[int, list[int]]:
    """Stream → the streams that its operations wait for unasked: a legacy default stream's blocking ones, and back."""
    legacy: dict[tuple[int, int], list[int]] = defaultdict(list)
    blocking: dict[tuple[int, int], list[int]] = defaultdict(list)
    places = {stream: (int(ops.context[own[0]]), int(ops.device[own[0]])) for stream, own in streams.items()}
    for stream, own in streams.items():
        if ops.legacy[own[0]]:
            legacy[places[stream]].append(stream)
        elif ops.blocking[own[0]]:
            blocking[places[stream]].append(stream)
    found: dict[int, list[int]] = {}
    for place, own_streams in legacy.items():
        found |= dict.fromkeys(own_streams, blocking[place]) | dict.fromkeys(blocking[place], own_streams)
    return found


def _across_streams(
    record: LoopTrace, launch_lag: Floats, stream_lag: Floats, settings: Mapping[str, float]
) -> tuple[list[tuple[EdgeKind, Ints, Ints, Floats]], Floats]:
    """Return edges between streams: the legacy default stream's, and those inferred from starts at another end."""
    ops = record.ops
    nearest = np.full(len(ops), np.inf)
    found: list[tuple[EdgeKind, Ints, Ints, Floats]] = []
    for direction in (1, 2):
        own = np.flatnonzero(ops.direction == direction)
        own = own[np.argsort(ops.device[own], kind="stable")]
        free = (ops.end[own[:-1]] <= ops.start[own[1:]]) & (ops.device[own[:-1]] == ops.device[own[1:]])
        behind, source = own[1:][free], own[:-1][free]
        lag = ops.start[behind] - ops.end[source]
        nearest[behind] = np.minimum(nearest[behind], lag)
        found.append((EdgeKind.ENGINE, source, behind, lag))
    streams = by_stream(ops.stream, np.arange(len(ops)))
    if len(streams) < 2:
        return found, nearest
    ordered = _ordered(ops, streams)
    for stream, own in streams.items():
        for other in ordered.get(stream, ()):
            theirs = streams[other]
            last = np.searchsorted(ops.start[theirs], ops.start[own], "left") - 1
            held = own[last >= 0]
            source = theirs[last[last >= 0]]
            done = ops.end[source] <= ops.start[held] + settings["replay_clock_ns"]
            held, source = held[done], source[done]
            lag = np.maximum(ops.start[held] - ops.end[source], 0)
            nearest[held] = np.minimum(nearest[held], lag)
            found.append((EdgeKind.LEGACY, source, held, lag))
    source, held = _event_edges(record)
    lag = np.maximum(ops.start[held] - ops.end[source], 0)
    np.minimum.at(nearest, held, lag)
    found.append((EdgeKind.EVENT, source, held, lag))
    late = np.flatnonzero(np.minimum(np.minimum(launch_lag, stream_lag), nearest) > settings["replay_inferred_ns"])
    by_end = np.argsort(ops.end, kind="stable")
    position = np.searchsorted(ops.end[by_end], ops.start[late], "right") - 1
    late, position = late[position >= 0], position[position >= 0]
    source = by_end[position]
    lag = ops.start[late] - ops.end[source]
    inferred = (ops.stream[source] != ops.stream[late]) & (lag <= settings["replay_inferred_ns"])
    nearest[late[inferred]] = np.minimum(nearest[late[inferred]], lag[inferred])
    found.append((EdgeKind.INFERRED, source[inferred], late[inferred], lag[inferred]))
    source, held = _without_room(ops, streams, late[~inferred])
    nearest[held] = ops.start[held] - ops.end[source]
    found.append((EdgeKind.INFERRED, source, held, nearest[held]))
    return found, nearest


def _without_room(ops: Ops, streams: Mapping[int, Ints], late: Ints) -> tuple[Ints, Ints]:
    """Kernels that nothing recorded held back, each behind the other stream's kernel beside whose last blocks it began.

    While a kernel fills the GPU, another stream's next one waits for its multiprocessors, and begins a little before
    it ends: its lag is below 0.
    """
    held = late[ops.kind[late] == 0]
    source = np.full(len(held), -1, dtype=np.int64)
    ends = np.full(len(held), np.inf)
    for stream, own in streams.items():
        kernels = own[ops.kind[own] == 0]
        if not len(kernels):
            continue
        last = kernels[np.maximum(np.searchsorted(ops.start[kernels], ops.start[held], "left") - 1, 0)]
        runs = (ops.start[last] < ops.start[held]) & (ops.end[last] > ops.start[held])
        sooner = runs & (stream != ops.stream[held]) & (ops.device[last] == ops.device[held]) & (ops.end[last] < ends)
        source[sooner], ends[sooner] = last[sooner], ops.end[last[sooner]]
    return source[source >= 0], held[source >= 0]


def _event_edges(record: LoopTrace) -> tuple[Ints, Ints]:
    """Operations before a recorded event, and the first operation that the waiting stream was given afterwards."""
    calls, ops = record.calls, record.ops
    launched = np.where(ops.call >= 0, calls.start[np.maximum(ops.call, 0)], ops.start) if len(calls) else ops.start
    sources, targets = [], []
    for stream in np.unique(record.event_stream):
        own = np.flatnonzero(ops.stream == stream)
        own = own[np.argsort(launched[own], kind="stable")]
        asked = np.flatnonzero(record.event_stream == stream)
        next_op = np.searchsorted(launched[own], record.event_time[asked], "left")
        there = next_op < len(own)
        sources.append(record.event_from[asked[there]])
        targets.append(own[next_op[there]])
    if not sources:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    source, target = np.concatenate(sources), np.concatenate(targets)
    before = ops.end[source] <= ops.start[target]
    return source[before], target[before]
