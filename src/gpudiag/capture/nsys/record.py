"""Record a program under Nsight Systems: a bounded part of it, exported and cleaned."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from gpudiag.capture import workspace
from gpudiag.capture.measure import Unprofiled, delay, range_s
from gpudiag.capture.nsys import nsys_profile
from gpudiag.capture.nsys.nsys_profile import Nsys, Range
from gpudiag.capture.plan import Plan
from gpudiag.capture.program import Program
from gpudiag.capture.redact import redact
from gpudiag.capture.smi.sampler import Sampler
from gpudiag.capture.supervisor import ProgramRun, run
from gpudiag.errors import GpudiagError

SETTLE_S = 120.0
"""Seconds that nsys has to write its report after it was asked to stop."""
_EXPORT_S = 1800.0
"""Reports of gigabytes take minutes to export; one that hangs must not hang us."""
_NAME, _LOG = "report", "profiled.log"
_NSYS_SAYS = "Generating '"
"""Where nsys begins to speak of its own files."""
_NOT_PROCESSED, _NOT_ALL = "Error when processing events", "Not all CUDA events"
_GPU_WORK = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


def part(plan: Plan, unprofiled: Unprofiled) -> Range:
    """Return what is recorded: warm iterations where it is known when the program is warm, the whole of a short
    program, the end of a longer one that ends by itself, or else the beginning.
    """
    if plan.profiler_range:
        return Range(0.0, plan.duration_s, profiler_range=True)
    if plan.delay_s is not None:
        return Range(plan.delay_s, plan.duration_s, profiler_range=False)
    whole = unprofiled.whole_s
    if unprofiled.warm_s is not None and unprofiled.iteration_s is not None:
        begin, length = delay(plan, unprofiled.warm_s), range_s(plan, unprofiled.iteration_s)
        if whole is None or whole >= begin + length:
            return Range(begin, length, profiler_range=False)
    # A start-up may take longer than what is recorded: where the program's end is known, that is in it.
    begin = (
        0.0 if whole is None or delay(plan, whole) <= plan.duration_s else max(0.0, float(int(whole - plan.duration_s)))
    )
    return Range(begin, plan.duration_s, profiler_range=False)


def command(plan: Plan, nsys: Nsys, program: Program, chosen: Range, private: Path) -> list[str]:
    """Return the command that records."""
    usual = tempfile.gettempdir()
    # The program keeps its own folder for temporary files, unless programs cannot be executed there.
    temporary = usual if private.parent == Path(usual) else None
    report = private / f"{_NAME}.nsys-rep"
    return nsys_profile.profile(nsys, program, chosen, report, graph_nodes=plan.graph_nodes, temporary=temporary)


class Recorded(NamedTuple):
    """Cleaned exports, one of each rank, and the command that recorded them."""

    files: list[Path]
    words: list[str]


def record(
    plan: Plan, words: list[str], nsys: Nsys, chosen: Range, sampler: Sampler, private: Path, kept: Path
) -> Recorded:
    """Run the command. Raises GpudiagError where there is nothing. sampler: begins with what is recorded.

    An NVTX range that nsys cannot resolve, as XLA marks them, takes GPU work with it: the program is then recorded once
    more without.
    """
    temporary = private / "tmp"
    temporary.mkdir(exist_ok=True)
    most = min(plan.max_size, workspace.room(private) // 2)

    def watch(passed: float) -> str:
        if passed >= chosen.delay_s:
            sampler.begin()
        return "size" if workspace.size(private) > most else ""

    env = {**os.environ, "TMPDIR": str(temporary)}
    log = private / _LOG
    done = run(words, env, log, plan.limit_s, watch=watch, end_by=signal.SIGINT, settle_s=SETTLE_S, before=_NSYS_SAYS)
    sampler.end()
    reports = sorted(private.glob(f"{_NAME}*.nsys-rep"))
    if not reports:
        raise _nothing(done, chosen, private, most)
    if _failed_early(done, chosen):
        raise _failed(done)
    if done.ended:
        plan.say(f"recording was stopped at {'its size' if done.ended == 'size' else 'the time'} limit")
    exports = [_exported(nsys, report, private, plan) for report in reports]
    again = nsys_profile.without_nvtx(words)
    if again != words and any(map(_lost_events, exports)):
        plan.say(
            "nsys could not process some events, and GPU work is lost with them: recording again without NVTX ranges"
        )
        plan.say(f"recording: {shlex.join(again)}")
        for file in (*reports, *exports):
            file.unlink(missing_ok=True)
        return record(plan, again, nsys, chosen, sampler, private, kept)
    _require_gpu_work(exports)
    files = []
    for export in exports:
        target = kept / export.name
        removed = redact(export, target)
        plan.say(f"{target}: removed {sum(removed.values()):,} traces of this machine and its environment")
        files.append(target)
    if plan.keep_report:
        for report in reports:
            shutil.move(report, kept / report.name)
            plan.say(
                f"{kept / report.name}: kept as nsys wrote it, with the environment of the program; do not share it"
            )
    return Recorded(files, words)


def _nothing(done: ProgramRun, chosen: Range, private: Path, most: int) -> GpudiagError:
    """Say why there is no report, by what is there instead."""
    said = f"; it last said: {done.last_words}" if done.last_words else ""
    if workspace.is_full(private):
        return GpudiagError(
            f"{private.parent}: the disk is full, so nothing was recorded; give it room, or set TMPDIR."
        )
    if any(private.rglob("*.qdstrm")) and not done.ended and done.code >= 0:
        return GpudiagError(f"{nsys_profile.not_imported(private / _LOG)}.")
    if done.ended == "size":
        return GpudiagError(
            f"the recording reached {most:,} bytes before nsys could finish it: give a shorter --duration, or a larger"
            " --max-size."
        )
    if done.ended == "time":
        return GpudiagError(
            f"nsys wrote no report within the --limit: give a longer one, or a shorter --duration{said}."
        )
    if done.code < 0:
        return GpudiagError(
            f"nsys was ended by signal {-done.code} half-way, so nothing was recorded; try again{said}."
        )
    if done.code:
        return _failed(done)
    if chosen.profiler_range:
        return GpudiagError(
            "nothing was recorded: the program did not call cudaProfilerStart; leave --profiler-range out."
        )
    if chosen.delay_s:
        return GpudiagError(
            f"nothing was recorded: the program ended before recording began, {chosen.delay_s:.0f} s after its start;"
            " give a shorter --delay."
        )
    return GpudiagError(f"nsys wrote no report{said}; run it by hand to see why (--dry-run prints the command).")


def _failed_early(done: ProgramRun, chosen: Range) -> bool:
    """Return whether the program failed by itself: at the end of the range nsys ends it with a signal."""
    by_nsys = (128 + signal.SIGTERM, -signal.SIGTERM)
    before_its_end = done.seconds < chosen.delay_s + chosen.duration_s and not chosen.profiler_range
    return done.code not in (0, *by_nsys) and not done.ended and before_its_end


def _failed(done: ProgramRun) -> GpudiagError:
    said = f", last saying: {done.last_words}" if done.last_words else ""
    return GpudiagError(f"the program failed under nsys with exit code {done.code}{said}; nothing is kept.")


def _exported(nsys: Nsys, report: Path, private: Path, plan: Plan) -> Path:
    target = report.with_suffix(".sqlite")
    done = run(nsys_profile.export(nsys, report, target), os.environ, private / "export.log", _EXPORT_S)
    if done.code or done.ended or not target.is_file() or not target.stat().st_size:
        if workspace.is_full(private):
            raise GpudiagError(f"{private.parent}: the disk is full, so the report could not be exported; set TMPDIR.")
        said = f": {done.last_words}" if done.last_words else ""
        raise GpudiagError(f"nsys recorded, but its export failed{said}; install nsys again, with its host part.")
    plan.say(f"recorded {report.stat().st_size:,} bytes")
    return target


def _lost_events(export: Path) -> bool:
    """Return whether nsys says that it failed to process events and may not have all of CUDA's."""
    try:
        with closing(sqlite3.connect(f"file:{export}?mode=ro", uri=True)) as db:
            said = [str(text) for (text,) in db.execute("select text from DIAGNOSTIC_EVENT")]
    except sqlite3.Error:  # without the table nothing is said; what cannot be read at all is said below
        return False
    return any(text.startswith(_NOT_PROCESSED) for text in said) and any(_NOT_ALL in text for text in said)


def _require_gpu_work(exports: list[Path]) -> None:
    """Refuse recordings without any work of a GPU. Raises GpudiagError with what nsys itself says of CUDA."""
    warnings: list[str] = []
    for export in exports:
        try:
            with closing(sqlite3.connect(f"file:{export}?mode=ro", uri=True)) as db:
                tables = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
                if any(
                    db.execute(f"select 1 from CUPTI_ACTIVITY_KIND_{kind} limit 1").fetchone()
                    for kind in _GPU_WORK
                    if f"CUPTI_ACTIVITY_KIND_{kind}" in tables
                ):
                    return
                if "DIAGNOSTIC_EVENT" in tables:
                    query = "select text from DIAGNOSTIC_EVENT where text like '%CUDA%' or text like '%CUPTI%'"
                    warnings += [str(text) for (text,) in db.execute(query)]
        except sqlite3.Error as error:
            raise GpudiagError(f"nsys recorded, but its export cannot be read ({error}); try again.") from None
    said = f" (nsys says: {' '.join(warnings[0].split())[:200].rstrip('.')})" if warnings else ""
    raise GpudiagError(
        f"the program did no work on a GPU while it was recorded{said}; where it does so later, give --delay."
    )
