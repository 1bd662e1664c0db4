"""Give gpudiag damaged inputs and see what it makes of them:  python -m fuzz --inputs 20000 --seed 1 [--page]

Every input is made from a small sample of the project's captures by one to five random steps, given to the command line
in a process of its own, and judged: a report whose figures can be, or one sentence that names the file. Anything else
is found: a traceback, a signal, more than 10 s, more than 2 GB, a report that no reader takes. What is found is kept in
--keep, in as few steps as still show it. Input number I of a seed is the same on every run: --only I runs it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from fuzz import plan as plans
from fuzz import samples as sampling
from fuzz import worker
from fuzz.given import Given
from fuzz.plan import Plan
from fuzz.pool import Pool, Result
from fuzz.tally import Tally

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "fixtures/captures/dependent_gather/slow.sqlite.xz"  # to warm up with
KEPT = 3  # inputs of each kind


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other inputs (default: %(default)s)")
    parser.add_argument("--reader", action="append", choices=sorted(plans.READERS), help="only these; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where found inputs are kept")
    parser.add_argument(
        "--only", type=int, action="append", metavar="I", help="run input I alone, and say what it said"
    )
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="run the inputs kept there, and say how each went")
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="further captures to make samples of")
    parser.add_argument("--few", action="store_true", help="fewer samples: starts sooner")
    parser.add_argument("--sentences", type=int, default=0, metavar="N", help="print the N commonest answers by reader")
    parser.add_argument("--page", action="store_true", help="write docs/fuzzing.md")
    return parser.parse_args()


def make_samples(scratch: Path, corpus: Path | None, few: bool) -> sampling.Samples:
    folder = scratch / "samples"
    folder.mkdir()
    command = [
        sys.executable,
        "-m",
        "fuzz.samples",
        str(folder),
        str(corpus.resolve()) if corpus else "",
        json.dumps(few),
    ]
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
    return sampling.load(folder)


def work(
    numbers: Sequence[int], made: dict[int, Plan], samples: sampling.Samples
) -> Iterator[tuple[int, worker.Build, str]]:
    for number in numbers:
        plan = made[number]
        yield number, partial(plans.built, plan, samples), plan.output


def smaller(plan: Plan, kind: str, samples: sampling.Samples, pool: Pool) -> Plan:
    """As few steps as still show the same."""
    at = 0
    while len(plan.steps) > 1 and at < len(plan.steps):
        fewer = replace(plan, steps=plan.steps[:at] + plan.steps[at + 1 :])
        ((_, result),) = pool.run(work([0], {0: fewer}, samples))
        if result.kind == kind:
            plan = fewer
        else:
            at += 1
    return plan


def keep(folder: Path, number: int, plan: Plan, result: Result, samples: sampling.Samples) -> None:
    """The input's files, and what is wrong with it."""
    place = folder / f"{number}-{plan.reader}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    pid = os.fork()
    if pid == 0:
        try:
            given: Given = plans.built(plan, samples)
            given.write(place)
            (place / "COMMAND").write_text(json.dumps(given.words) + "\n")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    (place / "FOUND").write_text(
        f"{result.kind}\n{plan}\n{result.seconds:.1f} s, {result.peak / 1e6:.0f} MB\n\n{result.detail}\n"
    )


def again(folder: Path, jobs: int) -> None:
    """Run kept inputs: files, and folders that hold a COMMAND. Prints a line of JSON for each."""
    cases = [kept(path) for path in sorted(folder.iterdir()) if path.name != "README.md"]
    with tempfile.TemporaryDirectory(prefix="fz-") as scratch:
        sample = Path(scratch) / "sample.sqlite"
        sample.write_bytes(sampling.small_export(sampling.unpacked(ROOT / SAMPLE)))
        worker.prepare(sample)
        pool = Pool(jobs, Path(scratch))
        for at, result in pool.run((at, given.copy, "json") for at, (_, given) in enumerate(cases)):
            print(
                json.dumps({"case": cases[at][0], "outcome": result.outcome, "kind": result.kind, "note": result.note}),
                flush=True,
            )


def kept(path: Path) -> tuple[str, Given]:
    """A kept input and its name."""
    if path.is_file():
        return path.name, Given({path.name: path.read_bytes()}, ["explain", f"@{path.name}"], path.name)
    files = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
    words: list[str] = json.loads(files.pop("COMMAND"))
    return path.name, Given(files, words, next(word[1:] for word in words if word.startswith("@")))


def main() -> None:
    """The command line."""
    args = arguments()
    if args.again:
        again(args.again, args.jobs)
        return
    tally = Tally(args.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fz-") as scratch:
        fuzz(args, tally, Path(scratch))
    print(tally.text(args.sentences))
    if args.page:
        tally.record()
    if tally.kinds:
        raise SystemExit(1)


def fuzz(args: argparse.Namespace, tally: Tally, scratch: Path) -> None:
    """Run the inputs and count; an interrupt ends it with what has been counted."""
    readers = tuple(args.reader or plans.READERS)
    samples = make_samples(scratch, args.corpus, args.few)
    worker.prepare(min((scratch / "samples" / "exports").iterdir()))
    made = {number: plans.planned(args.seed, number, readers) for number in args.only or range(args.inputs)}
    pool, began = Pool(args.jobs, scratch), time.monotonic()
    try:
        for number, result in pool.run(work(list(made), made, samples)):
            plan = made[number]
            tally.add(number, plan.reader, result)
            tally.seconds = time.monotonic() - began
            if args.only:
                print(f"{number}: {plan}\n{result.outcome}: {result.kind}{result.note}")
                print(f"{result.seconds:.2f} s, {result.peak / 1e6:.0f} MB\n{result.detail}")
            if result.outcome in ("found", "broken"):
                say(f"{number} {plan.reader}: {result.kind}")
                if args.keep and tally.kinds[result.kind] <= KEPT:
                    keep(args.keep, number, smaller(plan, result.kind, samples, Pool(1, scratch)), result, samples)
            if tally.inputs % 500 == 0:
                say(f"{tally.inputs} inputs, {tally.seconds:.0f} s")
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM):  # a second one would lose what has been counted
            signal.signal(number, signal.SIG_IGN)
        pool.stop()
        say(f"interrupted after {tally.inputs} inputs")


def say(text: str) -> None:
    print(f"fuzz: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
