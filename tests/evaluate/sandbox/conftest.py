"""What never ends has to fail, not hang: far more time of a CPU than any of these tests takes."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

GUARD_S = 60


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError(f"still running after {GUARD_S} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, GUARD_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
