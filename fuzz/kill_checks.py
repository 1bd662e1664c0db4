"""Checks after a command was stopped: no file half written, nothing left behind, the same report again."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LATEST = 1.0
"""Seconds after SIGINT or SIGTERM in which a run has to end, unless --latest says otherwise."""


class Broken(Exception):
    """Something that has to hold does not."""


@dataclass(frozen=True)
class Place:
    """The folders of one test."""

    capture: Path
    cache: Path
    temporary: Path
    out: Path

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "XDG_CACHE_HOME": str(self.cache), "TMPDIR": str(self.temporary)}

    def start(self, out: Path, env: Mapping[str, str] | None = None, *more: str) -> subprocess.Popen[bytes]:
        """`gpudiag explain` in a process group of its own."""
        command = [sys.executable, "-m", "gpudiag", "explain", str(self.capture), "-o", str(out), *more]
        return subprocess.Popen(
            command, env=dict(env or self.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip


@dataclass
class Checks:
    """Conditions that have to hold, and what was seen."""

    place: Place
    reference: bytes = b""
    digest: str = ""
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    """Signal → seconds from it to the end of the run that took longest."""
    latest: float = LATEST

    def begin(self) -> tuple[float, float]:
        """The report that all others have to equal, and how long a run takes without and with the cache."""
        self.digest = digest(self.place.capture)
        times = []
        for _ in range(2):
            began = time.monotonic()
            report = self.whole_run()
            times.append(time.monotonic() - began)
            self.reference = self.reference or report
        return times[0], times[1]

    def whole_run(self) -> bytes:
        """A run left to its end, after which nothing of those before it is left."""
        out = self.place.out / "whole.json"
        process = self.place.start(out)
        said = process.communicate()[1]
        require(process.returncode == 0 and not said, f"a whole run ended with {process.returncode}: {said!r}")
        report = out.read_bytes()
        require(not self.reference or report == self.reference, "a report differs from the first one")
        require(digest(self.place.capture) == self.digest, "the capture has changed")
        beside = names(self.place.capture.parent)
        require(beside == [self.place.capture.name], f"beside the capture lies {beside}")
        require(not names(self.place.temporary), f"left behind: {names(self.place.temporary)}")
        kept = names(self.place.cache / "gpudiag" / "stores")
        endings = sorted(name.rpartition(".")[2] for name in kept)
        require(endings in (["duckdb"], ["duckdb", "memo"]), f"the cache holds {kept}")
        return report

    def stopped(self, number: signal.Signals, emptied: bool, twice: bool, moments: Sequence[float]) -> None:
        """Runs that get the signal, each at its moment."""
        if emptied:
            shutil.rmtree(self.place.cache / "gpudiag", ignore_errors=True)
        began = time.monotonic()
        runs = []
        for index, _ in enumerate(moments):
            out = self.place.out / f"stopped{index}.json"
            out.unlink(missing_ok=True)
            runs.append((self.place.start(out), out))
        for (process, _), moment in sorted(zip(runs, moments, strict=True), key=lambda pair: pair[1]):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            self.signalled(process, number, number.name)
        for process, out in runs:
            printed, said = process.communicate()
            self.judge(number, process.returncode, said.decode(), out)
            require(not printed, f"printed {printed!r}")
            self.seen[number.name, "emptied"] += emptied
            self.seen[number.name, "twice"] += twice
        self.seen[number.name, "left"] += bool(left := names(self.place.temporary))
        require(number == signal.SIGKILL or not left, f"{number.name} left {left}")

    def signalled(self, process: subprocess.Popen[bytes], number: signal.Signals, kind: str) -> None:
        """Send the signal, and see that the run ends soon."""
        began = time.monotonic()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        took = time.monotonic() - began
        self.slowest[kind] = max(took, self.slowest.get(kind, 0.0))
        require(took <= self.latest, f"{kind}: ended {took:.1f} s after it")

    def judge(self, number: signal.Signals, code: int, said: str, out: Path) -> None:
        """One stopped run: its exit code, what it said, and its report, whole or not at all."""
        self.seen[number.name, "runs"] += 1
        if out.exists():
            require(out.read_bytes() == self.reference, f"{number.name} left a part of a report")
        if code == 0:
            require(out.exists(), "a run that ended well wrote no report")
            self.seen[number.name, "ended"] += 1
        elif number == signal.SIGKILL:
            require(code == -number, f"killed, but ended with {code}: {said}")
        elif code == 128 + number:
            require(said.count("\n") <= 1 and "Traceback" not in said, f"{number.name}: {said}")
        else:
            require(early(number, code, said), f"{number.name} ended with {code}: {said}")
            self.seen[number.name, "early"] += 1


def early(number: signal.Signals, code: int, said: str) -> bool:
    """Return whether the signal came before the program was loaded: Python itself reports a Ctrl-C while it starts."""
    return code == -number or (number == signal.SIGINT and code == 1 and "gpudiag" not in said)


def require(holds: object, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
