"""Check times measured without the profiler against the recording, and take whole multiples of an iteration for what
they are.

A time may be that of several iterations as they were found (a step of eight layers, where the layer is what repeats),
or of a part of one (where the step is eight tokens). All figures of a report stay those of the iteration found: the
time is divided or multiplied accordingly, and a note says so. This is the only place that knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpudiag.errors import GpudiagError
from gpudiag.model import Loop, Note
from gpudiag.text.format import code, dur, num, pct, plural

_NO_FLOOR = ("idle", "exposed_communication")
"""A kernel that exchanges data also waits for a slowed peer: without the profiler it is shorter."""
OPTION = "--iteration-time"


class Fit(NamedTuple):
    """A given time as that of an iteration found. iterations: how many of these it is for; 8, 1 or 1/8, say."""

    unprofiled_ms: float
    iterations: float


def doubt(loop: Loop, unprofiled_ms: float, settings: Mapping[str, float]) -> str:
    """Explain why the time cannot be that of one iteration of the loop; empty where it can."""
    ratio = unprofiled_ms / loop.iteration_ms
    working = sum(share for part, share in loop.budget.items() if not part.startswith(_NO_FLOOR))
    busy_ms = min(1.0, working) * loop.iteration_ms
    given, recorded = f"{dur(unprofiled_ms * 1e6)} without the profiler", dur(loop.iteration_ms * 1e6)
    if unprofiled_ms < settings["given_least_busy"] * busy_ms:
        return f"{given} is less than the {dur(busy_ms * 1e6)} in which the GPU works: is it the time of another loop?"
    if ratio < settings["given_least"]:
        return f"{given} is {num(1 / ratio)} times less than the recorded {recorded}: is the unit right?"
    if ratio > settings["given_most"]:
        return f"{given} is {num(ratio)} times the recorded {recorded}: is it the time of several iterations?"
    return ""


def fit(loop: Loop, given_ms: float, settings: Mapping[str, float], option: str = OPTION) -> Fit:
    """The time of one iteration of the loop. Raises GpudiagError for a time that cannot be one, several or a part."""
    problem = doubt(loop, given_ms, settings)
    if not problem:
        return Fit(given_ms, 1.0)
    ratio = given_ms / loop.iteration_ms
    count = round(max(ratio, 1 / ratio))
    near = abs(max(ratio, 1 / ratio) / count - 1) <= settings["given_multiple"]
    # No more iterations than were recorded, nor more parts than an iteration has launches.
    # A range of the user's own is the iteration: no shorter time is that of a part of it.
    whole = loop.source != "nvtx" and (not loop.launches or count <= loop.launches)
    recorded = whole if ratio < 1 else count * loop.processes <= loop.iterations
    if count >= 2 and near and recorded:
        return Fit(given_ms / count, float(count)) if ratio > 1 else Fit(given_ms * count, 1 / count)
    few = f", of which only {loop.iterations:,} were recorded" if not recorded and ratio > 1 else ""
    raise GpudiagError(
        f"{option} cannot be right for {loop.name!r}: {problem.partition(':')[0]}{few}, so give the time of one of its"
        " iterations, or name the loop that it belongs to (LOOP=TIME)."
    )


def timed(loop: Loop, given_ms: float | None, settings: Mapping[str, float]) -> Loop:
    """The loop with the time of an iteration without the profiler, where one was given. Raises GpudiagError."""
    if not given_ms:
        return loop
    found = fit(loop, given_ms, settings)
    return loop.model_copy(
        update={
            "iteration_ms_unprofiled": found.unprofiled_ms,
            "given_ms": given_ms,
            "given_iterations": found.iterations,
        }
    )


def notes(loops: tuple[Loop, ...]) -> tuple[Note, ...]:
    """A note for each loop of which the time given is that of several iterations, or of a part of one."""
    return tuple(
        Note(code="TIME", title="The time given is not that of one iteration", text=text, severity="low")
        for loop in loops
        if (text := multiple(loop.name, loop.iteration_ms, loop.given_ms, loop.given_iterations))
    )


def multiple(name: str, recorded_ms: float, given_ms: float | None, iterations: float, option: str = OPTION) -> str:
    """Say how a time that is a multiple or a part of the recorded iteration was used; empty where it is neither."""
    if given_ms is None or iterations == 1:
        return ""
    given, recorded = dur(given_ms * 1e6), dur(recorded_ms * 1e6)
    each = dur(given_ms / iterations * 1e6)
    if iterations > 1:
        count = f"{iterations:,.0f}"
        return (
            f"`{option}` {given} is {count} times the iteration found, {recorded} of {code(name)}: it is taken as that"
            f" of {count}, {each} each without the profiler. All figures are of one of them."
        )
    parts = plural(round(1 / iterations), "iteration")
    return (
        f"An iteration found, {recorded} of {code(name)}, is taken as {parts} of the {given} that `{option}` gives:"
        f" {each} without the profiler. All figures are of the iteration found."
    )


def longer(loop: Loop, where: str, computing: float, enough: float) -> str:
    """Say that a time given is longer than what was recorded, of which the GPU computes enough; else nothing.

    The profiler makes no iteration shorter: windows that were timed may also hold validation or other work.
    """
    given_ms = loop.iteration_ms_unprofiled or 0.0
    if computing < enough or given_ms <= loop.iteration_ms:
        return ""
    given, recorded = dur(given_ms * 1e6), dur(loop.iteration_ms * 1e6)
    return (
        f"The GPU computes {pct(computing)} of {where} as recorded, {recorded} an iteration; what the {given} that were"
        " measured without the profiler hold beside that was not recorded"
    )
