"""Worker process: make an input, run the command on it as a user would, judge, answer."""

from __future__ import annotations

import faulthandler
import hashlib
import importlib
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from fuzz import judge
from fuzz.generators.shuffled import shuffle_rows
from fuzz.given import Given

BYTES = 2 << 30  # that a run may hold at once
_ADDRESSES = 24 << 30  # address space: arenas and mapped files are not memory
_FILE = 6 << 30  # most bytes of a file that it may write

_IMPORTS = (
    "compare", "next_steps.proposals", "evaluate.engine", "evaluate.sandbox", "report.saved", "authoring.lint",
    "authoring.scaffold", "diagnosis.rank", "diagnosis.run_summary", "diagnosis.verdict", "replay.estimate",
    "timeline.draw", "cli.check", "cli.diff", "cli.explain", "cli.rules", "gate.check", "gate.configfile",
    "gate.baseline", "report.check", "report.diff",
)  # fmt: skip

Build = Callable[[], Given]


def prepare(sample: Path) -> None:
    """Do once what every process would do: imports, compiled code, the packaged rules. Raises SystemExit."""
    import functools

    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy would start threads, as polars does: that is left to each process
    for name in _IMPORTS:
        importlib.import_module(f"gpudiag.{name}")
    from gpudiag import pipeline
    from gpudiag.cli import main
    from gpudiag.library import load as library
    from gpudiag.report import formats

    load, packaged = library.load, functools.cache(library.load)
    library.load = lambda dirs=(), **more: load(dirs, **more) if dirs or more else packaged()
    from gpudiag.ingest.sources import sqlite

    with tempfile.TemporaryDirectory() as folder:
        for suffix, large in ((".html", 0), (".json", sqlite.PAGES_FROM)):
            sqlite.PAGES_FROM = large  # once by compiled code
            try:
                main(["explain", str(sample), "-o", f"{folder}/out{suffix}"])
            except SystemExit as end:
                if end.code:
                    raise
        report = pipeline.report([Path(folder) / "out.json"])
        for form in formats.ALL:
            formats.render(report, form.name)
    deadline = time.monotonic() + 5
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit("fuzz: threads are left over; a fork of them would not be sound")


def _limit() -> None:
    for what, most in ((resource.RLIMIT_AS, _ADDRESSES), (resource.RLIMIT_FSIZE, _FILE), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))


def _hashes(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file" if path.is_file() else "other"
        if kind == "file":
            with path.open("rb") as file:
                kind = hashlib.file_digest(file, "sha256").hexdigest()
        found[str(path.relative_to(folder))] = kind
    return found


def runs_of(form: str) -> int:
    """Return how often the command is run on an input."""
    return 2 if form in ("twice", "shuffled") else 1


def serve(build: Build, form: str, folder: Path, pipe: int) -> None:
    """The whole life of the process; its answer goes to the pipe."""
    work, tmp = folder / "w", folder / "t"
    for made in (work, tmp, folder / "home", folder / "cache"):
        made.mkdir()
    os.environ |= {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(tmp)}
    tempfile.tempdir = None
    given = build()
    given.write(work)
    given.files = dict.fromkeys(given.files, b"")
    before = _hashes(work)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory counts from here
    _limit()
    os.chdir(work)
    command = given.command(work)
    verb, twice = given.words[0], runs_of(form) == 2 and given.words[0] == "explain"
    suffix = ("html" if verb == "explain" else "md") if form == "html" else "json"
    output = None if verb == "rules" else folder / f"out.{suffix}"
    if form == "twice":
        _set("prepare", "IN_MEMORY", 0)  # below it nothing is kept
    if form == "paged":
        _set("ingest.sources.sqlite", "PAGES_FROM", 0)
    os.write(pipe, b"made %f\n" % time.process_time())
    try:
        code, said, printed = _run(_printing(command, output), folder, "first")
        outcome, note = judge.judged(given, work, code, said, printed, output)
        if twice and output:
            again = output.with_name("again.json")
            if form == "shuffled":
                shuffle_rows(1)
            second = _run(_printing(command, again), folder, "second")
            if second != (code, said, printed) or (outcome == "report" and again.read_bytes() != output.read_bytes()):
                raise judge.Found("a second run differs", str(second)[:2000])
        if _hashes(work) != before:
            raise judge.Found("inputs were changed", str(set(_hashes(work).items()) ^ set(before.items()))[:500])
        if left := os.listdir(tmp):
            raise judge.Found("temporary files are left", str(left))
        answer = {"outcome": outcome, "note": note}
    except judge.Found as found:
        answer = {"outcome": "found", "kind": found.kind, "detail": found.detail}
    except BaseException as error:  # noqa: BLE001  whatever gpudiag lets through is what we are after
        answer = {"outcome": "found", "kind": _place(error), "detail": traceback.format_exc()[-6000:]}
    os.write(pipe, json.dumps(answer).encode())


def _set(module: str, name: str, value: int) -> None:
    """Treat small inputs as large ones. Raises AttributeError where the limit has another name now."""
    found = importlib.import_module(f"gpudiag.{module}")
    getattr(found, name)
    setattr(found, name, value)


def _printing(command: list[str], output: Path | None) -> list[str]:
    """The command with where to write, and how where the file's name does not tell."""
    if output is None:
        return command
    form = {".json": "json", ".md": "markdown"}.get(output.suffix, "")
    return [*command, "-o", str(output), *(["--format", form] if command[0] == "check" else [])]


def _run(command: list[str], folder: Path, which: str) -> tuple[int, str, str]:
    """The command line itself, with its streams in files. Exceptions that it lets through are not caught."""
    from gpudiag.cli import main

    files = [folder / f"{name}-{which}" for name in ("stdout", "stderr")]
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w", encoding="utf-8", errors="replace") for number in (1, 2))
    faulthandler.enable(sys.stderr)
    code = 0
    try:
        main(command)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    sys.stdout.flush()
    sys.stderr.flush()
    printed, said = (file.read_text("utf-8", "replace") for file in files)
    return code, said, printed


def _place(error: BaseException) -> str:
    """The kind of an exception: its type, and the innermost function of gpudiag that it passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/gpudiag/" in frame.filename]
    where = f"{frames[-1].filename.rpartition('/gpudiag/')[2]}:{frames[-1].name}" if frames else "elsewhere"
    return f"{type(error).__name__} in {where}"
