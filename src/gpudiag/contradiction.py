"""Times measured without the profiler, against the recording: what cannot be this loop's time."""

from __future__ import annotations

from collections.abc import Mapping

from gpudiag.model import Loop
from gpudiag.templating import dur, num

_NO_FLOOR = ("idle", "exposed_communication")
"""A kernel that exchanges data also waits for a slowed peer: without the profiler it is shorter."""


def contradiction(loop: Loop, unprofiled_ms: float, settings: Mapping[str, float]) -> str:
    """Why the time cannot be that of an iteration of the loop, if it cannot."""
    working = sum(share for part, share in loop.budget.items() if not part.startswith(_NO_FLOOR))
    busy_ms = min(1.0, working) * loop.iteration_ms
    given = f"{dur(unprofiled_ms * 1e6)} without the profiler"
    if unprofiled_ms < settings["given_least_busy"] * busy_ms:
        return f"{given} is less than the {dur(busy_ms * 1e6)} in which the GPU works: is it the time of another loop?"
    if unprofiled_ms > settings["given_most"] * loop.iteration_ms:
        times = num(unprofiled_ms / loop.iteration_ms)
        return f"{given} is {times} times the recorded {dur(loop.iteration_ms * 1e6)}: is the unit right?"
    return ""
