"""gpudiag's own stages, as NVTX ranges for the tools whose reports it reads, and as times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Watcher = Callable[[str, float], None]
"""Hears each stage that ends, with the seconds it took; stages inside others end first."""
_watchers: list[Watcher] = []


def stage(name: str) -> AbstractContextManager[object]:
    """A range called `name` in the domain `gpudiag` while a profiler is attached; nothing otherwise.

    Importing nvtx takes a tenth of a second, so it is left alone unless a profiler announced itself.
    """
    if _watchers:
        return _timed(name)
    if "NVTX_INJECTION64_PATH" not in os.environ:
        return nullcontext()
    import nvtx

    range_: AbstractContextManager[object] = nvtx.annotate(name, domain="gpudiag")
    return range_


def watch(watcher: Watcher) -> None:
    """From now on tell how long each stage of this process took; profilers then see no ranges."""
    _watchers.append(watcher)


@contextmanager
def _timed(name: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        for watcher in _watchers:
            watcher(name, time.perf_counter() - began)
