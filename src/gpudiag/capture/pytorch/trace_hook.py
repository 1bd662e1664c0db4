"""Record some iterations of a program by torch.profiler from inside, where Nsight Systems is not installed.

The text of this module lies beside the hook that times steps, which loads it into the program: there it needs the
standard library only, any Python since 3.8, and the program's own PyTorch.

Recording begins after so many steps of the first optimizer, which then are the iterations; or at a time, once the
program has begun to use the GPU. It ends after so many steps or seconds, or with the program. The profiler is started
and stopped by the thread that steps, else by the main thread between two of its instructions, because it records the
operators only of the thread that started it. Where the main thread only waits, as in servers, those of all threads are
recorded by PyTorch versions that can.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from typing import Any

LOADED, BEGUN, TRACE, FAILED = "loaded-", "begun-", "trace-", "failed-"
"""What the files of a process are called that loads PyTorch, that records, that has done so, or that cannot."""

_POLL_S = 0.05
_PATIENCE_S = 2.0
"""Seconds after which a main thread that waits for something is no longer waited for."""
_BEGAN = time.monotonic()
_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class TraceHook:
    """One recording of this process.

    wishes: `folder`, `rank_variable`, `begin_step` (0: by time), `delay_s`, `steps` and `seconds`.
    """

    def __init__(self, wishes: dict[str, Any]) -> None:
        self.wishes = wishes
        self.pid = os.getpid()
        rank = os.environ.get(wishes["rank_variable"] or "")
        self.name = f"rank{int(rank)}" if rank and rank.isdigit() else str(self.pid)
        self.lock = threading.RLock()
        self.profiler: Any = None
        self.over = False
        self.optimizer: int | None = None
        self.steps = 0
        self.begun_at = 0
        self.thread = 0  # the one that started the profiler; 0 before it has
        self.mark: Any = None
        self.calls: list[object] = []
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def loaded(self) -> None:
        """Note that the program uses PyTorch; called while that is being loaded."""
        self._note(LOADED, "")
        atexit.register(self._at_exit)
        self.watcher.start()

    def step(self, optimizer: object, *_: object) -> None:
        """Count a step of the first optimizer; called by torch after each."""
        if os.getpid() != self.pid or self.over or capturing():
            return
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if id(optimizer) != self.optimizer:
            return
        self.steps += 1
        with self.lock:
            if self.profiler is None and self.steps == self.wishes["begin_step"]:
                self.begin()
            if threading.get_ident() == self.thread:
                self._next_iteration()

    def _next_iteration(self) -> None:
        self._close_mark()
        made = self.steps - self.begun_at
        if self.wishes["begin_step"] and made >= self.wishes["steps"]:
            self.end()
            return
        self.mark = sys.modules["torch.profiler"].record_function(f"ProfilerStep#{made}")
        self.mark.__enter__()

    def _close_mark(self) -> None:
        mark, self.mark = self.mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def begin(self) -> None:
        """Start the profiler, once. Nothing that goes wrong may end the program."""
        with self.lock:
            if self.profiler is not None or self.over:
                return
            try:
                profiler = __import__("torch.profiler").profiler
                every = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
                wishes = every_thread() if threading.current_thread() is self.watcher else {}
                self.profiler = profiler.profile(activities=every, with_stack=True, record_shapes=True, **wishes)
                self._note(BEGUN, "")
                self.profiler.start()
                self.begun_at, self.thread = self.steps, threading.get_ident()
            except Exception as error:  # noqa: BLE001  of any kind, by the version of PyTorch
                self._fail(error)

    def end(self) -> None:
        """Stop the profiler, and write the trace."""
        with self.lock:
            if not self.thread or self.over:
                return
            self.over = True
            try:
                if threading.get_ident() == self.thread:
                    self._close_mark()
                self.profiler.stop()
                part = os.path.join(self.wishes["folder"], f"part-{self.name}.json.gz")
                self.profiler.export_chrome_trace(part)
                os.replace(part, os.path.join(self.wishes["folder"], f"{TRACE}{self.name}.json.gz"))
            except Exception as error:  # noqa: BLE001  of any kind, by the version of PyTorch
                self._fail(error)

    def _watch(self) -> None:
        """Begin and end by time."""
        if not self.wishes["begin_step"]:
            while time.monotonic() - _BEGAN < self.wishes["delay_s"] or not using_gpu():
                time.sleep(_POLL_S)
            self._have_done(self.begin)
        while not self.thread and not self.over:
            time.sleep(_POLL_S)
        time.sleep(self.wishes["seconds"])
        self._have_done(self.end)

    def _have_done(self, what: Any) -> None:
        """Have the main thread do it, or do it here where that does not come to it; no graph is captured meanwhile."""
        done = threading.Event()

        def call(_: object) -> int:
            if not done.is_set() and not capturing():
                what()
                done.set()
            return 0

        called = _CALL(call)
        self.calls.append(called)  # until the program ends: Python does not keep what it is to call
        latest = time.monotonic() + _PATIENCE_S
        while not done.is_set():
            ctypes.pythonapi.Py_AddPendingCall(called, None)
            done.wait(_POLL_S)
            if time.monotonic() > latest:
                with self.lock:
                    call(None)

    def _at_exit(self) -> None:
        if os.getpid() == self.pid:
            self.end()

    def _fail(self, error: Exception) -> None:
        self.over = True
        self._note(FAILED, f"{type(error).__name__}: {error}")

    def _note(self, kind: str, text: str) -> None:
        path = os.path.join(self.wishes["folder"], f"{kind}{self.name}")
        with open(f"{path}.new", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(f"{path}.new", path)


def every_thread() -> dict[str, Any]:
    """Return the option that records the operators of all threads, where this PyTorch has it."""
    try:
        return {"experimental_config": sys.modules["torch"]._C._profiler._ExperimentalConfig(profile_all_threads=True)}
    except (AttributeError, TypeError):
        return {}


def using_gpu() -> bool:
    """Return whether the program has begun to use the GPU."""
    torch = sys.modules.get("torch")
    cuda: Any = getattr(torch, "cuda", None)  # not there while torch is being loaded
    return hasattr(cuda, "is_initialized") and bool(cuda.is_initialized())


def capturing() -> bool:
    """Return whether a CUDA graph is being captured: nobody may wait for the GPU now."""
    return using_gpu() and bool(sys.modules["torch"].cuda.is_current_stream_capturing())
