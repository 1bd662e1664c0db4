"""Measure a few kernels with Nsight Compute, in a run of the program for each, ended once they are measured.

Every failure is a sentence: the timeline is there already, and is worth a report without them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpudiag.capture import workspace
from gpudiag.capture.plan import Plan
from gpudiag.capture.program import look_at
from gpudiag.capture.supervisor import ProgramRun, run
from gpudiag.errors import GpudiagError

_HELP_S, _IMPORT_S = 60.0, 600.0
"""An ncu that hangs must not hang us; it reads the report of a kernel in seconds."""
_DRIVER = Path("/proc/driver/nvidia/params")
_STATUS = Path("/proc/self/status")
_SYS_ADMIN = 1 << 21
"""Bit of CAP_SYS_ADMIN, with which the driver lets any user read counters."""
_LOG_END = 65536
"""Bytes at the end of a log in which ncu's messages are looked for."""
_INSTALL = (
    "install the package nsight-compute (Debian and Ubuntu: `apt install nsight-compute` from NVIDIA's CUDA repository;"
    " elsewhere https://developer.nvidia.com/nsight-compute)"
)
NOT_PERMITTED = (
    "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): have an administrator load the driver with"
    " NVreg_RestrictProfilingToAdminUsers=0, or run as root, in a container with --cap-add SYS_ADMIN."
)


@dataclass(frozen=True)
class MeasuredKernel:
    """A kernel to measure. select: ncu's options that find its launches; file: a name for its results."""

    name: str
    select: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class Ncu:
    """An installed ncu: its path, and whether it can end the program once it has measured."""

    path: str
    ends_program: bool

    def command(self, plan: Plan, kernel: MeasuredKernel, report: Path) -> list[str]:
        """Return the command that measures a kernel."""
        words = [self.path, "--set", "full", "--import-source", "yes", "--target-processes", "all", *kernel.select]
        return [*words, *(["--kill", "yes"] if self.ends_program else []), "-o", str(report), *plan.words()]


def find(plan: Plan) -> Ncu:
    """Return the ncu on the PATH. Raises GpudiagError where there is none, or none that may measure this program."""
    path = shutil.which("ncu")
    if path is None:
        raise GpudiagError(f"ncu is not on the PATH: {_INSTALL}, or add its folder to PATH.")
    if look_at(plan.words()).launcher:
        raise GpudiagError("ncu cannot replay the kernels of ranks that wait for each other: give a single process.")
    if _restricted():
        raise GpudiagError(NOT_PERMITTED)
    try:
        said = subprocess.run([path, "--help"], capture_output=True, check=False, timeout=_HELP_S).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or "it does not answer"
        raise GpudiagError(f"{path} cannot be run ({reason}): {_INSTALL}.") from None
    return Ncu(path, b"--kill " in said)


def _restricted() -> bool:
    """Return whether the driver will refuse, as far as can be seen before anything is run."""
    try:
        only_admin = re.search(r"^RmProfilingAdminOnly: 1$", _DRIVER.read_text("utf-8"), re.MULTILINE)
        held = re.search(r"^CapEff:\s*([0-9a-f]+)$", _STATUS.read_text("utf-8"), re.MULTILINE)
    except OSError:
        return False
    return bool(only_admin and held and not int(held[1], 16) & _SYS_ADMIN)


def measure(plan: Plan, ncu: Ncu, kernels: Sequence[MeasuredKernel], kept: Path) -> list[Path]:
    """Return the counters of each kernel as a page of ncu; of those that fail, it says why.

    Raises GpudiagError where none could be measured.
    """
    files: list[Path] = []
    failures: list[str] = []
    with workspace.private_folder(kept) as private:
        for kernel in kernels:
            report = private / f"{kernel.file}.ncu-rep"
            words = ncu.command(plan, kernel, report)
            plan.say(f"measuring {kernel.name}: {shlex.join(words)}")
            log = private / f"{kernel.file}.log"
            done = run(words, os.environ, log, plan.limit_s)
            try:
                if not report.is_file():
                    raise GpudiagError(_reason(done, log, kernel))
                files.append(_page(ncu, report, kept / f"{kernel.file}.csv", private))
            except GpudiagError as error:
                failures.append(str(error))
                if failures[-1] == NOT_PERMITTED:
                    break
                continue
            if plan.keep_report:
                shutil.move(report, kept / report.name)
                plan.say(f"{kept / report.name}: kept as ncu wrote it, with the environment of the program")
    if not files:
        raise GpudiagError(failures[0])
    for failure in failures:
        plan.say(f"one kernel is left out: {failure}")
    return files


def _reason(done: ProgramRun, log: Path, kernel: MeasuredKernel) -> str:
    """Say why there is no report, by what ncu said."""
    with log.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _LOG_END, 0))
        text = file.read().decode("utf-8", "replace")
    if "ERR_NVGPUCTRPERM" in text:
        return NOT_PERMITTED
    if done.ended:
        return f"ncu did not measure {kernel.name} within the --limit: give a longer one."
    if "No kernels were profiled" in text:
        return f"{kernel.name} was not launched as often under ncu as on the timeline: give a longer run."
    said = re.findall(r"^==ERROR== (.+?)\.?$", text, re.MULTILINE)
    how = f"was ended by signal {-done.code}" if done.code < 0 else f"ended with exit code {done.code}"
    return f"ncu says: {said[-1][:200]}." if said else f"ncu {how}, last saying: {done.last_words}."


def _page(ncu: Ncu, report: Path, target: Path, private: Path) -> Path:
    """Write the counters without the environment that the report holds. Raises GpudiagError where ncu cannot."""
    log = private / "import.log"
    try:
        with target.open("wb") as page, log.open("wb") as errors:
            words = [ncu.path, "--import", str(report), "--csv", "--page", "raw"]
            done = subprocess.run(words, stdout=page, stderr=errors, check=False, timeout=_IMPORT_S)
    except subprocess.TimeoutExpired:
        raise GpudiagError(f"ncu did not read its own report within {_IMPORT_S:.0f} s.") from None
    if done.returncode or not target.stat().st_size:
        target.unlink()
        raise GpudiagError(f"ncu cannot read its own report (exit code {done.returncode}): {_INSTALL}.")
    return target
