"""A process for each input, up to some at a time: their time, their memory, how they end."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz.worker import BYTES, Build, runs_of, serve

SECONDS = 10.0  # of the processors' time that a run may take: what other programs take of it does not count
WAITING = 60.0  # seconds that it may take by the clock
TOO_LONG, TOO_MUCH = "takes more than 10 s", "takes more than 2 GB"
_EVERY = 0.05  # seconds between two looks at its memory
_MAKING = 120.0  # seconds that making an input may take


@dataclass
class Result:
    """Outcome of a run: `report`, `refused` or `found`; the last with a kind and details."""

    outcome: str
    kind: str = ""
    detail: str = ""
    seconds: float = 0.0
    peak: int = 0
    note: str = ""


@dataclass
class _Child:
    number: int
    pid: int
    pidfd: int
    pipe: int
    folder: Path
    began: float
    runs: int
    made: float | None = None
    used: float = 0.0  # processor seconds for making the input
    said: bytes = b""
    killed: str = ""
    peak: int = 0


class Pool:
    """Up to `jobs` runs at a time."""

    def __init__(self, jobs: int, scratch: Path) -> None:
        self._jobs, self._scratch = jobs, scratch
        self._children: list[_Child] = []

    def run(self, work: Iterator[tuple[int, Build, str]]) -> Iterator[tuple[int, Result]]:
        """Every input's number with its result, as they end."""
        work = iter(work)
        done = False
        while not done or self._children:
            while not done and len(self._children) < self._jobs:
                item = next(work, None)
                if item is None:
                    done = True
                else:
                    self._start(*item)
            yield from self._look()

    def stop(self) -> None:
        """End what is running."""
        for child in self._children:
            self._kill(child, "stopped")
            self._kill(child, "stopped")
            os.waitpid(child.pid, 0)
        self._children.clear()

    def _start(self, number: int, build: Build, form: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.close(reading)
                serve(build, form, folder, writing)
                status = 0
            except BaseException:  # noqa: BLE001  the parent has to hear of it
                said = {"outcome": "broken", "kind": "the fuzzer failed", "detail": traceback.format_exc()[-4000:]}
                os.write(writing, json.dumps(said).encode())
            finally:
                os._exit(status)
        os.close(writing)
        os.set_blocking(reading, False)
        self._children.append(_Child(number, pid, os.pidfd_open(pid), reading, folder, time.monotonic(), runs_of(form)))

    def _look(self) -> Iterator[tuple[int, Result]]:
        """Wait a moment; watch time and memory; collect who ended."""
        poll = select.poll()
        for child in self._children:
            poll.register(child.pidfd, select.POLLIN)
        ended = {handle for handle, _ in poll.poll(_EVERY * 1000)}
        for child in list(self._children):
            self._listen(child)
            if child.pidfd in ended:
                self._children.remove(child)
                yield child.number, self._collect(child)
            else:
                self._watch(child)

    def _listen(self, child: _Child) -> None:
        try:
            while said := os.read(child.pipe, 65_536):
                child.said += said
        except BlockingIOError:
            pass
        if child.made is None and child.said.startswith(b"made ") and b"\n" in child.said:
            said, _, child.said = child.said.partition(b"\n")
            child.made, child.used = time.monotonic(), float(said.split()[1])

    def _watch(self, child: _Child) -> None:
        try:
            with open(f"/proc/{child.pid}/statm", encoding="ascii") as file:
                child.peak = max(child.peak, int(file.read().split()[1]) * resource.getpagesize())
            with open(f"/proc/{child.pid}/stat", encoding="ascii", errors="replace") as file:
                times = file.read().rpartition(")")[2].split()[11:15]  # its own, and those of children that have ended
        except (OSError, IndexError):
            return
        now, used = time.monotonic(), (sum(map(int, times)) / os.sysconf("SC_CLK_TCK") - child.used) / child.runs
        if child.killed:
            self._kill(child, child.killed)
        elif child.peak > BYTES * 3 // 2:
            self._kill(child, "memory")
        elif child.made is not None and (used > SECONDS + 1 or now - child.made > WAITING):
            self._kill(child, "hang")
        elif child.made is None and now - child.began > _MAKING:
            self._kill(child, "making")

    def _kill(self, child: _Child, why: str) -> None:
        if not child.killed:  # first let it say where it is, at the next look end it and what it started
            child.killed = why
            os.kill(child.pid, signal.SIGABRT)
            return
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(child.pid, signal.SIGKILL)

    def _collect(self, child: _Child) -> Result:
        _, status, usage = os.wait4(child.pid, 0)
        self._listen(child)
        seconds = (usage.ru_utime + usage.ru_stime - child.used) / child.runs
        os.close(child.pidfd)
        os.close(child.pipe)
        peak = max(child.peak, usage.ru_maxrss * 1024)
        logs = sorted(child.folder.glob("stderr-*"))
        said = "".join(log.read_text("utf-8", "replace")[-3000:] for log in logs)
        shutil.rmtree(child.folder, ignore_errors=True)
        answer = child.said
        if child.killed == "making" or (child.made is None and not answer):
            return Result("broken", "making", said, seconds, peak)
        if child.killed:
            return Result("found", {"hang": TOO_LONG, "memory": TOO_MUCH}[child.killed], said, seconds, peak)
        code = os.waitstatus_to_exitcode(status)
        if code < 0 or not answer:
            name = signal.Signals(-code).name if code < 0 else f"exit {code}"
            return Result("found", f"died of {name}", said, seconds, peak)
        result = Result(**json.loads(answer), seconds=seconds, peak=peak)
        if result.outcome != "broken" and peak > BYTES:
            return Result("found", TOO_MUCH, said, seconds, peak)
        if result.outcome != "broken" and seconds > SECONDS:
            return Result("found", TOO_LONG, said, seconds, peak)
        return result
