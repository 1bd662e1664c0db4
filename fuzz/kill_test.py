"""Kill `gpudiag explain` at random moments:  python -m fuzz.kill_test [--kills N] [--signals N] [--seed N] [-o FILE]

One capture, one cache that all runs share, one folder for temporary files. Runs get SIGKILL, SIGINT or SIGTERM at a
moment drawn from the time that they take; some start two at once, some begin without anything in the cache. Every few
runs one is left to its end. What has to hold is written down in `Checks`; the first thing that does not ends the test
with 1. Then SIGINT and SIGTERM while captures are read that were made to take long, and the same with disks that are
full, read-only or missing. The table is written to docs/robustness.md.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import enlarge
from fuzz.generators import oversized
from fuzz.kill_checks import LATEST, Broken, Checks, Place, early, names, require

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = ROOT / "fixtures/captures/healthy_low_occupancy_gemm/healthy.sqlite.xz"
EVERY = 10
"""Runs between two that are left to their end."""
TWO_AT_ONCE, EMPTIED = 0.3, 0.5
"""Parts of the runs that start two processes, and that find nothing in the cache."""
HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "calls that overlap": partial(oversized.overlapping, 80_000),
    "pages in a circle": oversized.circle,
    "rows that share a value": oversized.shared_chain,
    "a hundred thousand tables": oversized.crowd,
}
TINY = 3_000_000
"""Bytes of a disk that is nearly full."""
PAGE = """\
<!-- Written by `python -m fuzz.kill_test`. -->

# Runs that do not end well

`gpudiag explain` of a capture of {rows:,} event rows ({size:.0f} MB), with a cache that all runs share. Seed {seed}.

| stopped by | runs | ended before it | with an empty cache | beside another | left files behind | longest after it |
|---|--:|--:|--:|--:|--:|--:|
{stopped}

After every {every} of them a run was left to its end: {whole} in all. Each wrote the report of the first run byte for
byte; then there was nothing left in the folder for temporary files, nothing in the cache but the capture's store and
the answer kept with it, nothing beside the capture, and the capture was unchanged. No stopped run left a part of a
report where one was to be written.
Runs that got SIGINT or SIGTERM ended with 130 or 143 without a traceback and removed their files themselves, unless the
signal came before the program was loaded ({early} runs): then the system's own way to end applies.

Of captures that were made to take long, {hostile} runs got SIGINT or SIGTERM; all ended within {hostile_s:.1f} s.

| where something is wrong | what `explain` does |
|---|---|
{troubles}

`python -m fuzz.kill_test --kills {kills} --signals {signals}` does it all again.
"""


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


def stop_hostile(checks: Checks, runs: int, chance: random.Random) -> None:
    """Runs that read what was made to take long, each stopped at some moment."""
    folder = checks.place.capture.parent.parent / "hostile"
    folder.mkdir()
    for at, (name, made) in enumerate(HOSTILE.items()):
        capture = folder / f"{at}.sqlite"
        capture.write_bytes(made())
        place = replace(checks.place, capture=capture)
        for run in range(-(-runs // len(HOSTILE))):
            number = (signal.SIGTERM, signal.SIGINT)[run % 2]
            process = place.start(place.out / "hostile.json", None, "--no-cache")
            time.sleep(chance.uniform(0, 4))
            ended = process.poll() is not None
            checks.signalled(process, number, "hostile")
            printed, said = (text.decode() for text in process.communicate())
            code = process.returncode
            good = code in ((0, 2) if ended else (0, 2, 128 + number)) or early(number, code, said)
            require(good and not printed, f"{name}: {code}, {printed}{said}")
            require(said.count("\n") <= (code == 2) or early(number, code, said), f"{name}: {said}")
            require(not names(place.temporary), f"{name} left {names(place.temporary)}")
            checks.seen["hostile", "runs"] += 1
    print(f"hostile: {checks.seen['hostile', 'runs']} runs stopped, all is well", flush=True)


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
    """Run the command where it cannot write."""
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
        f"| {number} | {' | '.join(str(seen[number, column]) for column in columns)} | {checks.slowest[number]:.1f} s |"
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
        hostile=seen["hostile", "runs"],
        hostile_s=checks.slowest.get("hostile", 0.0),
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
    parser.add_argument("--hostile", type=int, default=80, help="runs on hostile captures (default: %(default)s)")
    parser.add_argument(
        "--latest", type=float, default=LATEST, metavar="S", help="seconds from signal to end; more on a busy machine"
    )
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
        os.utime(place.capture, (time.time() - 3600,) * 2)  # what was written just now is not kept
        checks = Checks(place, latest=args.latest)
        try:
            times = checks.begin()
            print(f"a run takes {times[0]:.1f} s without the cache, {times[1]:.1f} s with it", flush=True)
            whole = stop_many(checks, signal.SIGKILL, args.kills, times, chance)
            whole += sum(stop_many(checks, one, args.signals, times, chance) for one in (signal.SIGINT, signal.SIGTERM))
            stop_hostile(checks, args.hostile, chance)
            text = page(checks, made, args.seed, whole, list(troubles(checks, scratch)))
        except Broken as error:
            raise SystemExit(f"kill_test: {error}") from None
    args.output.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
