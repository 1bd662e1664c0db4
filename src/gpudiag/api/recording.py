"""A recording by torch.profiler, from the options to the report: the shortest way from a program to its findings."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpudiag import tempdir
from gpudiag.api import calls
from gpudiag.api.arguments import AnyPath, Times, path_of
from gpudiag.api.report import Report
from gpudiag.errors import GpudiagError
from gpudiag.text.format import plural

_SUFFIXES = (".json", ".json.gz")


def profile(
    path: AnyPath | None = None,
    *,
    steps: int | None = None,
    warmup: int = 2,
    stacks: bool = True,
    shapes: bool = True,
    memory: bool = False,
) -> Recording:
    """Record what runs in a `with` block by torch.profiler; `report()` of what it gives explains it.

    path: where the trace is kept, a .json or .json.gz; otherwise it goes with the recording. steps: how many iterations
    to record after `warmup` others, by `step()` at the end of each; otherwise the whole block is recorded, and `step()`
    may mark its iterations. stacks: the functions that a cost is in, at up to half the speed of the host. shapes: the
    shapes of operators' inputs. memory: what PyTorch's allocator gives out and takes back.

    Raises GpudiagError where PyTorch is missing, or an argument is of no use.
    """
    _check("warmup", warmup, 0)
    if steps is not None:
        _check("steps", steps, 1)
    place = None if path is None else path_of(path)
    if place is not None and not place.name.endswith(_SUFFIXES):
        raise GpudiagError(f"{place} has no suffix of a trace: end it in {' or '.join(_SUFFIXES)}.")
    if place is not None and not place.parent.is_dir():
        raise GpudiagError(f"{place}: there is no folder {place.parent}; make it first, or give another path.")
    options = {"with_stack": stacks, "record_shapes": shapes, "profile_memory": memory}
    return Recording(_torch(), place, steps, warmup, options)


class Recording:
    """A recording by torch.profiler, to be used in a `with` statement once."""

    def __init__(
        self, profiler: Any, path: Path | None, steps: int | None, warmup: int, options: Mapping[str, bool]
    ) -> None:
        self._torch = profiler
        self._path = path
        self._steps, self._warmup = steps, warmup
        self._options = options
        self._running: Any = None
        self._mark: Any = None
        self._marked = 0
        self._written: Path | None = None

    @property
    def path(self) -> Path:
        """The trace. Raises GpudiagError before there is one."""
        if self._written is not None:
            return self._written
        if self._running is not None and self._steps is None:
            raise GpudiagError("The recording still runs: ask for its report after the with block.")
        if self._steps is None:
            raise GpudiagError("Nothing was recorded: run the work in `with gpudiag.profile() as p:`, then ask p.")
        needed, made = plural(self._warmup, "time"), plural(self._marked, "time")
        raise GpudiagError(
            f"Nothing was recorded yet: with warmup={self._warmup} recording begins once p.step() was called {needed},"
            f" at the end of each iteration; it was called {made}."
        )

    def step(self) -> None:
        """Say that an iteration is over and the next one begins. Raises GpudiagError outside the with block."""
        if self._running is None:
            raise GpudiagError("Nothing is being recorded: call p.step() inside `with gpudiag.profile() as p:`.")
        self._marked += 1
        if self._steps is not None:
            self._running.step()
            return
        # torch.profiler marks iterations only where it has a schedule.
        self._close_mark()
        self._mark = self._torch.record_function(f"ProfilerStep#{self._marked}")
        self._mark.__enter__()

    def report(
        self,
        *,
        iteration_time: Times | None = None,
        rules: AnyPath | Iterable[AnyPath] = (),
        overrides: Mapping[str, float] | None = None,
    ) -> Report:
        """Explain the recording, with the arguments of `gpudiag.explain`. Raises GpudiagError."""
        return calls.explain(self.path, iteration_time=iteration_time, rules=rules, overrides=overrides)

    def __enter__(self) -> Self:
        if self._running is not None or self._written is not None:
            raise GpudiagError("A recording is made once: call gpudiag.profile() again for another one.")
        activities = [self._torch.ProfilerActivity.CPU]
        if import_module("torch").cuda.is_available():
            activities.append(self._torch.ProfilerActivity.CUDA)
        schedule = None
        if self._steps is not None:
            schedule = self._torch.schedule(wait=0, warmup=self._warmup, active=self._steps, repeat=1)
        self._running = self._torch.profile(
            activities=activities, schedule=schedule, on_trace_ready=self._write, **self._options
        )
        self._running.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_mark()
        running, self._running = self._running, None
        running.__exit__(kind, error, trace)

    def _close_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _write(self, profiler: Any) -> None:
        """Keep the trace where it was asked for, else in a folder that goes with this object, or with the program."""
        place = self._path
        if place is None:
            stack = ExitStack()
            place = stack.enter_context(tempdir.work_folder()) / "trace.json.gz"
            weakref.finalize(self, stack.close)
        try:
            profiler.export_chrome_trace(str(place))
        except OSError as error:
            raise GpudiagError(
                f"{place} cannot be written ({error.strerror or error}): give it room, or another path."
            ) from None
        self._written = place


def _check(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise GpudiagError(f"{name}={value!r:.60} is no number of iterations: give a whole number from {least} on.")


def _torch() -> Any:
    """The module torch.profiler, which gpudiag does not depend on."""
    try:
        return import_module("torch.profiler")
    except ImportError as error:
        raise GpudiagError(
            f"gpudiag.profile() records with PyTorch, which cannot be loaded here ({error}): install it, or record the"
            " program with nsys."
        ) from None
