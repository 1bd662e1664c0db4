"""Kill `gpudiag explain` at random moments:  python scripts/kill_test.py [--kills N] [--signals N] [--seed N] [-o FILE]

One capture, one cache that all runs share, one folder for temporary files. Runs get SIGKILL, SIGINT or SIGTERM at a
moment drawn from the time that they take; some start two at once, some begin without anything in the cache. Every few
runs one is left to its end. What has to hold is written down in `Checks`; the first thing that does not ends the test
with 1. Then the same with disks that are full, read-only or missing. The table is written to docs/robustness.md.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import enlarge

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = ROOT / "fixtures/captures/healthy_low_occupancy_gemm/healthy.sqlite.xz"
EVERY = 10
"""Runs between two that are left to their end."""
TWO_AT_ONCE, EMPTIED = 0.3, 0.5
"""Parts of the runs that start two processes, and that find nothing in the cache."""
TINY = 3_000_000
"""Bytes of a disk that is nearly full."""
PAGE = """\
<!-- Written by scripts/kill_test.py. -->

# Runs that do not end well

`gpudiag explain` of a capture of {rows:,} event rows ({size:.0f} MB), with a cache that all runs share. Seed {seed}.

| stopped by | runs | ended before it | with an empty cache | beside another | left files behind |
|---|--:|--:|--:|--:|--:|
{stopped}

After every {every} of them a run was left to its end: {whole} in all. Each wrote the report of the first run byte for
byte; then there was nothing left in the folder for temporary files, one entry in the cache and nothing else, nothing
beside the capture, and the capture was unchanged. No stopped run left a part of a report where one was to be written.
Runs that got SIGINT or SIGTERM ended with 130 or 143 without a traceback and removed their files themselves, unless the
signal came before the program was loaded ({early} runs): then the system's own way to end applies.

| where something is wrong | what `explain` does |
|---|---|
{troubles}

`python scripts/kill_test.py --kills {kills} --signals {signals}` does it all again.
"""


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

    def start(self, out: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """`gpudiag explain` in a process group of its own."""
        command = [sys.executable, "-m", "gpudiag", "explain", str(self.capture), "-o", str(out)]
        return subprocess.Popen(
            command, env=dict(env or self.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip


@dataclass
class Checks:
    """What has to hold, and what was seen."""

    place: Place
    reference: bytes = b""
    digest: str = ""
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

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
        require(len(kept) == 1 and kept[0].endswith(".duckdb"), f"the cache holds {kept}")
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
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        for process, out in runs:
            printed, said = process.communicate()
            self.judge(number, process.returncode, said.decode(), out)
            require(not printed, f"printed {printed!r}")
            self.seen[number.name, "emptied"] += emptied
            self.seen[number.name, "twice"] += twice
        self.seen[number.name, "left"] += bool(left := names(self.place.temporary))
        require(number == signal.SIGKILL or not left, f"{number.name} left {left}")

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
            require(code == -number, f"{number.name} ended with {code}: {said}")
            self.seen[number.name, "early"] += 1


def require(holds: object, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stop_many(
    checks: Checks, number: signal.Signals, runs: int, times: tuple[float, float], chance: random.Random
) -> int:
    """So many runs stopped by a signal; how many whole ones there were between them."""
    whole = 0
    name = number.name
    while checks.seen[name, "runs"] < runs:
        before = checks.seen[name, "runs"]
        emptied = chance.random() < EMPTIED
        count = 2 if chance.random() < TWO_AT_ONCE and runs - before > 1 else 1
        longest = times[0] * count if emptied else times[1]
        checks.stopped(number, emptied, count == 2, [chance.uniform(0, longest) for _ in range(count)])
        if before // EVERY != checks.seen[name, "runs"] // EVERY:
            checks.whole_run()
            whole += 1
            print(f"{name}: {checks.seen[name, 'runs']} runs stopped, all is well", flush=True)
    return whole


@contextmanager
def disk(folder: Path, options: str) -> Iterator[bool]:
    """A small disk of its own in the folder, where that is allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "gpudiag-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


def troubles(checks: Checks, scratch: Path) -> Iterator[tuple[str, str]]:
    """What a run does where it cannot write."""
    place = checks.place
    full, fixed = f"size={TINY}", "ro"

    def outcome(env: Mapping[str, str], out: Path | None = None) -> str:
        out = out or place.out / "trouble.json"
        out.unlink(missing_ok=True)
        process = place.start(out, {**place.env, **env})
        said = process.communicate()[1].decode()
        if process.returncode == 0:
            require(out.read_bytes() == checks.reference and not said, f"{env}: another report, or it said {said}")
            return "the same report, nothing said"
        require(process.returncode == 2 and said.count("\n") == 1, f"{env}: {process.returncode}, {said}")
        require(not [name for name in names(out.parent) if out.name in name], "a part of a report")
        return f"exit code 2: `{said.strip().replace(str(scratch), '…').replace(str(place.capture.parent), '…')}`"

    for title, variable, options in (
        ("the cache's disk is full", "XDG_CACHE_HOME", full),
        ("the cache is read-only", "XDG_CACHE_HOME", fixed),
        ("the disk for temporary files is full", "TMPDIR", full),
        ("it is read-only", "TMPDIR", fixed),
    ):
        with disk(scratch / "disk", options) as made:
            shutil.rmtree(place.cache / "gpudiag", ignore_errors=True)
            yield title, outcome({variable: str(scratch / "disk")}) if made else "not tried: no right to mount a disk"
    with disk(scratch / "disk", "size=4096") as made:
        (scratch / "disk" / "fill").write_bytes(b"x" * 4096 if made else b"")
        yield "the report's disk is full", outcome({}, scratch / "disk" / "out.json") if made else "not tried"
    (scratch / "file").write_text("mine")
    yield "a file has the cache's name", outcome({"XDG_CACHE_HOME": str(scratch / "file")})
    require((scratch / "file").read_text() == "mine", "a file of the user's has changed")
    yield "there is no home", outcome({"XDG_CACHE_HOME": "", "HOME": ""})


def page(checks: Checks, rows: int, seed: int, whole: int, found: Sequence[tuple[str, str]]) -> str:
    seen = checks.seen
    columns = ("runs", "ended", "emptied", "twice", "left")
    stopped = [
        f"| {number} | {' | '.join(str(seen[number, column]) for column in columns)} |"
        for number in ("SIGKILL", "SIGINT", "SIGTERM")
        if seen[number, "runs"]
    ]
    return PAGE.format(
        rows=rows,
        size=checks.place.capture.stat().st_size / 1e6,
        seed=seed,
        kills=seen["SIGKILL", "runs"],
        signals=seen["SIGINT", "runs"],
        stopped="\n".join(stopped),
        every=EVERY,
        whole=whole,
        early=sum(seen[number, "early"] for number in ("SIGINT", "SIGTERM")),
        troubles="\n".join(f"| {title} | {outcome} |" for title, outcome in found),
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--capture", type=Path, default=CAPTURE, help="made larger for the test (default: a bundled one)"
    )
    parser.add_argument("--rows", type=int, default=300_000, help="event rows of the large file (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=200, help="runs that get SIGKILL (default: %(default)s)")
    parser.add_argument("--signals", type=int, default=50, help="that get SIGINT, and SIGTERM (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/robustness.md")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell's `&` ignores, children would ignore too
    chance = random.Random(args.seed)  # noqa: S311 - moments, no secrets
    with tempfile.TemporaryDirectory(prefix="kill-test-") as folder:
        scratch = Path(folder)
        place = Place(scratch / "in" / "run.sqlite", *(scratch / name for name in ("cache", "tmp", "out")))
        for inside in (place.capture.parent, place.cache, place.temporary, place.out):
            inside.mkdir()
        made = enlarge.enlarge(args.capture, place.capture, args.rows)
        checks = Checks(place)
        try:
            times = checks.begin()
            print(f"a run takes {times[0]:.1f} s without the cache, {times[1]:.1f} s with it", flush=True)
            whole = stop_many(checks, signal.SIGKILL, args.kills, times, chance)
            whole += sum(stop_many(checks, one, args.signals, times, chance) for one in (signal.SIGINT, signal.SIGTERM))
            text = page(checks, made, args.seed, whole, list(troubles(checks, scratch)))
        except Broken as error:
            raise SystemExit(f"kill_test: {error}") from None
    args.output.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
