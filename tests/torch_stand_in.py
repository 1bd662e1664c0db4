"""Stand-in for torch.profiler and torch.cuda: it takes the options, and writes a synthetic trace."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torch_traces import Event, document, event, launched

COMPUTING = [*launched(10, steps=False), event("cpu_op", "aten::mm", 0, 9)]
CPU_ONLY = [event("cpu_op", "aten::mm", 0, 9)]


class StandIn(ModuleType):
    """torch.profiler as far as a recording uses it, and torch.cuda."""

    def __init__(self, *, cuda: bool) -> None:
        super().__init__("torch.profiler")
        self.events: list[Event] = list(COMPUTING if cuda else CPU_ONLY)
        self.options: dict[str, Any] = {}
        self.ProfilerActivity = type("ProfilerActivity", (), {"CPU": "CPU", "CUDA": "CUDA"})
        self.profile: Callable[..., Profiler] = lambda **options: Profiler(self, options)
        self.record_function: Callable[[str], Mark] = lambda name: Mark(self, name)
        self.torch = ModuleType("torch")
        self.torch.cuda = ModuleType("torch.cuda")  # type: ignore[attr-defined]
        self.torch.cuda.is_available = lambda: cuda

    @staticmethod
    def schedule(**numbers: int) -> dict[str, int]:
        return numbers


class Profiler:
    """Records from the start without a schedule; with one, after its warm-up, and as many steps as it says."""

    def __init__(self, module: StandIn, options: dict[str, Any]) -> None:
        module.options = options
        self._module, self._schedule, self._steps, self._done = module, options["schedule"], 0, False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not self._done and (not self._schedule or self._steps >= self._schedule["warmup"]):
            self._module.options["on_trace_ready"](self)

    def step(self) -> None:
        self._steps += 1
        if self._steps == self._schedule["warmup"] + self._schedule["active"]:
            self._done = True
            self._module.options["on_trace_ready"](self)

    def export_chrome_trace(self, path: str) -> None:
        text = json.dumps(document(self._module.events)).encode()
        Path(path).write_bytes(gzip.compress(text) if path.endswith(".gz") else text)


class Mark:
    """A range, which lasts 1 ms on the clock of the synthetic trace."""

    def __init__(self, module: StandIn, name: str) -> None:
        self._module, self._name = module, name

    def __enter__(self) -> None:
        number = int(self._name.partition("#")[2])
        self._module.events.append(event("user_annotation", self._name, 1000.0 * number, 990))

    def __exit__(self, *_: object) -> None:
        pass


def stand_in(monkeypatch: pytest.MonkeyPatch, *, cuda: bool) -> StandIn:
    module = StandIn(cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", module.torch)
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    return module
