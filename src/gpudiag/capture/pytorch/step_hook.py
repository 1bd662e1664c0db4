"""Time optimizer steps inside a program that runs without a profiler.

The text of this module is written as `sitecustomize.py` into a folder at the front of the program's PYTHONPATH, so that
the program itself stays as it is. There it needs the standard library only, and any Python since 3.8.

After the warm-up it waits for the GPU once, and again at the end of each window of some steps: a window's time divided
by its steps is that of one iteration, with the GPU's work and the host's ahead of it counted alike.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import types
from typing import Any

WISHES = "GPUDIAG_STEPS"
"""Variable that holds what is asked for: `folder`, `warm_up`, `window_s`, `window_steps` and `windows`."""
TRACE_WISHES = "GPUDIAG_TRACE"
"""Variable that holds what is asked of the other hook, which records instead."""
NAME = "steps-"
"""The file of a process that loads PyTorch is called so, and by its number."""
_MODULE = "torch.optim.optimizer"
_BEGAN = time.monotonic()


class Windows:
    """Steps of the first optimizer that was seen, timed in windows; what is known is in the file after each of them."""

    def __init__(self, wishes: dict[str, Any]) -> None:
        self.wishes = wishes
        self.path = os.path.join(wishes["folder"], f"{NAME}{os.getpid()}.json")
        self.pid = os.getpid()
        self.optimizer: int | None = None
        self.steps = 0
        self.first = 0
        self.begin = 0.0
        self.warm_s = 0.0
        self.windows: list[list[float]] = []

    def loaded(self) -> None:
        """Note that the program uses PyTorch; called while that is being loaded."""
        self.write()

    def step(self, optimizer: object, *_: object) -> None:
        """Count a step; called by torch after each."""
        if capturing():
            return  # nobody may wait for the GPU now, and what is captured does not run
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if id(optimizer) != self.optimizer or os.getpid() != self.pid or len(self.windows) == self.wishes["windows"]:
            return
        self.steps += 1
        if self.steps == self.wishes["warm_up"]:
            self._open()
            self.warm_s = time.monotonic() - _BEGAN
        elif self.steps > self.wishes["warm_up"]:
            steps = self.steps - self.first
            passed = time.monotonic() - self.begin
            if steps >= self.wishes["window_steps"] and passed >= self.wishes["window_s"]:
                wait_for_gpu()
                self.windows.append([steps, time.monotonic() - self.begin])
                self._open()
                self.write()

    def _open(self) -> None:
        wait_for_gpu()
        self.first, self.begin = self.steps, time.monotonic()

    def write(self) -> None:
        """Replace the file in one step: whoever reads it may do so at any moment."""
        with open(self.path + ".new", "w") as file:
            json.dump({"steps": self.steps, "warm_s": self.warm_s, "windows": self.windows}, file)
        os.replace(self.path + ".new", self.path)


def capturing() -> bool:
    """Return whether a CUDA graph is being captured."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def wait_for_gpu() -> None:
    """Wait until the GPU has done what it was given, if it was given anything."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Finder(importlib.abc.MetaPathFinder):
    """Finds torch's optimizers as Python would, and asks them to report their steps once they are loaded."""

    def __init__(self, listener: Windows) -> None:
        self.listener = listener

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Return the module's own place, with a loader that also registers the hook."""
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        self.listener.loaded()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader, self.listener)
        return spec


class Loader(importlib.abc.Loader):
    """Loads torch's optimizers as Python would, and registers the hook."""

    def __init__(self, usual: importlib.abc.Loader, listener: Windows) -> None:
        self.usual = usual
        self.listener = listener

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Leave that to the usual loader."""
        return self.usual.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Load the module; PyTorch before 2.0 has no hook for steps."""
        self.usual.exec_module(module)
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is not None:
            register(self.listener.step)


def hidden() -> None:
    """Run the `sitecustomize` that this one hides, if there is another one."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [place for place in sys.path if os.path.abspath(place) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    hidden()
    if os.environ.get(WISHES):
        sys.meta_path.insert(0, Finder(Windows(json.loads(os.environ[WISHES]))))
    elif os.environ.get(TRACE_WISHES):
        recorder = importlib.import_module("gpudiag_trace_hook")
        sys.meta_path.insert(0, Finder(recorder.TraceHook(json.loads(os.environ[TRACE_WISHES]))))
