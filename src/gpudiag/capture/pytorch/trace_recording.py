"""Record a PyTorch program by its own profiler, where Nsight Systems is not installed: a bounded part, cleaned."""

from __future__ import annotations

import gzip
import math
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gpudiag.capture import workspace
from gpudiag.capture.measure import Unprofiled
from gpudiag.capture.nsys.nsys_profile import NoNsysError, Range
from gpudiag.capture.plan import Plan
from gpudiag.capture.program import Program, interpreter
from gpudiag.capture.pytorch import injection, step_hook, trace_hook
from gpudiag.capture.redact_places import ANY_HOME, HOME
from gpudiag.capture.smi.sampler import Sampler
from gpudiag.capture.supervisor import ProgramRun, run
from gpudiag.errors import GpudiagError

_LOOK_S = 60.0
"""A Python on a slow network disk needs seconds to start."""
_HAS_TORCH = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('torch') else 3)"
_NO_TORCH = 3
_WITHOUT_NSYS = ("--profiler-range", "--graph-nodes", "--keep-report")
_GPU_WORK = re.compile(r'"cat": ?"(kernel|gpu_memcpy|gpu_memset)"')
_HOST = re.compile(r'("(?:host_?name|traceName)": ?)"(?:[^"\\]|\\.)*"')
SETTLE_S = 10.0
"""Seconds that the program has to end once its trace is there."""


@dataclass(frozen=True)
class TraceRange:
    """The part that is recorded: from a step of the optimizer on, or (0) from a time on."""

    begin_step: int
    delay_s: float
    steps: int
    seconds: float

    def __str__(self) -> str:
        if self.begin_step:
            return f"{self.steps} steps of its optimizer, after {self.begin_step}"
        after = f"{self.delay_s:.0f} s after its start" if self.delay_s else "as soon as it uses the GPU"
        return f"{self.seconds:g} s, {after}"


def require(plan: Plan, program: Program, missing: NoNsysError) -> None:
    """Raise the error where torch.profiler cannot stand in: the program is no PyTorch program as far as can be seen
    without running it, or something was asked for that only nsys does.
    """
    if not program.python:
        raise missing
    asked = [flag for flag in _WITHOUT_NSYS if getattr(plan, flag.strip("-").replace("-", "_"))]
    if asked:
        raise GpudiagError(f"{asked[0]} needs Nsight Systems, but {missing.reason}: leave it out, or {missing.remedy}.")
    if (python := interpreter(program)) and _lacks_torch(python):
        raise missing


def _lacks_torch(python: str) -> bool:
    """Return whether that Python surely has no PyTorch; nothing of the program is run for that."""
    try:
        found = subprocess.run([python, "-c", _HAS_TORCH], capture_output=True, check=False, timeout=_LOOK_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == _NO_TORCH


def part(plan: Plan, unprofiled: Unprofiled, chosen: Range) -> TraceRange:
    """Return what is recorded. chosen: what nsys would have recorded."""
    limits = plan.thresholds
    step_s = unprofiled.iteration_s
    if plan.delay_s is None and unprofiled.pytorch and step_s:  # the steps of an optimizer were seen
        steps = max(limits.trace_iterations, limits.trace_least_s / step_s)
        return TraceRange(plan.warm_up, 0.0, math.ceil(steps), plan.duration_s)
    return TraceRange(0, chosen.delay_s, 0, min(plan.duration_s, limits.trace_most_s))


def record(
    plan: Plan, program: Program, chosen: TraceRange, missing: NoNsysError, sampler: Sampler, private: Path, kept: Path
) -> list[Path]:
    """Run the program with the hook, and return the cleaned traces, one of each rank. Raises GpudiagError where there
    is nothing.

    sampler: begins with the first trace.
    """
    folder = private / "traces"
    folder.mkdir()
    most = min(plan.max_size, workspace.room(private) // 2)
    first_done: float | None = None

    def watch(passed: float) -> str:
        nonlocal first_done
        if workspace.size(private) > most:
            return "size"
        begun, done = (_names(folder, kind) for kind in (trace_hook.BEGUN, trace_hook.TRACE))
        if begun:
            sampler.begin()
        if done and first_done is None:
            first_done = passed
        if _names(folder, trace_hook.FAILED):
            return "enough"
        # A rank that is a little behind has not begun yet; one that uses no GPU never will.
        late = {name for name in _names(folder, trace_hook.LOADED) if name.startswith("rank")} - begun
        waited = first_done is not None and passed - first_done > SETTLE_S
        return "enough" if done and begun <= done and (not late or waited) else ""

    wishes = {
        "folder": str(folder), "rank_variable": program.rank_variable, "begin_step": chosen.begin_step,
        "delay_s": chosen.delay_s, "steps": chosen.steps, "seconds": chosen.seconds,
    }  # fmt: skip
    env = injection.environment(injection.install(private / "trace-hook"), step_hook.TRACE_WISHES, wishes)
    words = [*program.launcher, *program.rank]
    done = run(words, env, private / "profiled.log", plan.limit_s, watch=watch, settle_s=SETTLE_S)
    sampler.end()
    traces = sorted(folder.glob(f"{trace_hook.TRACE}*.json.gz"))
    if not traces or done.ended == "size" or (done.code and not done.ended):
        raise _nothing(done, chosen, missing, folder, most)
    return _kept(plan, traces, kept)


def _names(folder: Path, kind: str) -> set[str]:
    """Return the processes that have left such a file."""
    found = (file.name.removeprefix(kind).removesuffix(".json.gz") for file in folder.glob(f"{kind}*"))
    return {name for name in found if not name.endswith(".new")}


def _kept(plan: Plan, traces: list[Path], kept: Path) -> list[Path]:
    """Clean what holds work of a GPU. Raises GpudiagError where none does."""
    files = []
    for trace in traces:
        name = trace.name.removeprefix(trace_hook.TRACE)
        target = kept / ("trace.json.gz" if len(traces) == 1 else f"trace.{name}")
        removed, gpu_work = _cleaned(trace, target)
        if not gpu_work:
            target.unlink()
            continue
        plan.say(f"{target}: {target.stat().st_size:,} bytes; removed {removed:,} traces of this machine")
        files.append(target)
    if not files:
        raise GpudiagError(
            "the program did no work on a GPU while PyTorch's profiler recorded it; where it does so later, give"
            " --delay, and where it surely does, see that nothing else profiles it."
        )
    return files


def _cleaned(trace: Path, target: Path) -> tuple[int, bool]:
    """Copy a trace without the machine's name and home folders; return how many went, and whether a GPU worked."""
    removed, gpu_work = 0, False
    with (
        gzip.open(trace, "rt", encoding="utf-8", errors="surrogateescape") as source,
        gzip.open(target, "wt", 4, encoding="utf-8", errors="surrogateescape") as result,
    ):
        for line in source:
            gpu_work = gpu_work or _GPU_WORK.search(line) is not None
            line, names = _HOST.subn(r'\1""', line)
            line, homes = HOME.subn(ANY_HOME, line)
            removed += names + homes
            result.write(line)
    return removed, gpu_work


def _nothing(done: ProgramRun, chosen: TraceRange, missing: NoNsysError, folder: Path, most: int) -> GpudiagError:
    """Say why there is no trace, by what is there instead."""
    said = f", last saying: {done.last_words}" if done.last_words else ""
    if workspace.is_full(folder):
        return GpudiagError(f"{folder.parent.parent}: the disk is full, so nothing was recorded; set TMPDIR.")
    for file in folder.glob(f"{trace_hook.FAILED}*"):
        reason = " ".join(file.read_text("utf-8").split())[:200].rstrip(".")
        return GpudiagError(f"PyTorch's profiler cannot record the program ({reason}): {missing.remedy}.")
    if done.ended == "size":
        return GpudiagError(f"the trace reached {most:,} bytes: give a shorter --duration, or a larger --max-size.")
    if done.code and not done.ended:
        how = f"was ended by signal {-done.code}" if done.code < 0 else f"failed with exit code {done.code}"
        return GpudiagError(f"the program {how} under PyTorch's profiler{said}; nothing is kept.")
    if not _names(folder, trace_hook.LOADED):
        return missing
    if done.ended:
        return GpudiagError(
            f"PyTorch's profiler recorded nothing within the --limit ({chosen}): give a longer one, or a shorter"
            f" --duration{said}."
        )
    return GpudiagError(
        f"nothing was recorded: the program ended before it had begun to use the GPU, or before what was to be recorded"
        f" ({chosen}); give --delay."
    )
