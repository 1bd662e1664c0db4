"""Nsight Systems as it is installed: where it is, which options it has, and the command lines for a light recording.

Every version has its own options: what its `--help` lists is used, and nothing else.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpudiag.capture.program import Program
from gpudiag.errors import GpudiagError

_HELP_S = 60
"""An nsys on a slow network disk needs seconds to print its help; one that hangs must not hang us."""
_LAST_BYTES = 1 << 16
"""Of what nsys printed: its reason comes last, its progress bar before."""
_NEEDED = ("--trace", "--output", "--duration", "--sample")
_NOT_IMPORTED = "nsys recorded, but wrote no report of it: "
_NO_IMPORTER = (
    "libdw is probably missing (Debian and Ubuntu: `apt install libdw1`; Fedora and Red Hat: `dnf install"
    " elfutils-libs`), or nsys was installed without its host part"
)
_NUMBERS_AGAIN = (
    "meanwhile so many processes began and ended beside the program that their numbers were given out twice, which nsys"
    " cannot read; record when fewer run, or let an admin raise the limit (`sysctl kernel.pid_max=4194304`)"
)
_ERROR_TEXT = re.compile(rb"Type: ErrorText\s+Value: \"([^\"\n]{1,300})\"")
_INSTALL = (
    "install the package nsight-systems (Debian and Ubuntu: `apt install nsight-systems-cli` from NVIDIA's CUDA"
    " repository; elsewhere https://developer.nvidia.com/nsight-systems)"
)


class NoNsysError(GpudiagError):
    """There is no nsys that could record. reason: why, as a clause; remedy: what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"recording needs Nsight Systems, but {reason}: {remedy}.")
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True)
class Nsys:
    """An installed nsys: its path, its version, and what `nsys profile --help` and `nsys export --help` say."""

    path: str
    version: str
    profile_help: str
    export_help: str

    def offers(self, option: str) -> bool:
        return re.search(rf"^\s*(-\w, )?{option}\b", self.profile_help, re.MULTILINE) is not None


def find() -> Nsys:
    """Return the nsys on the PATH. Raises NoNsysError where there is none, or none that can record."""
    path = shutil.which("nsys")
    if path is None:
        raise NoNsysError("nsys is not on the PATH", f"{_INSTALL}, or add its folder to PATH")
    version = re.search(r"version (\d{4}\.\d+\.\d+)", _says(path, "--version"))
    nsys = Nsys(
        path, version[1] if version else "unknown", _says(path, "profile", "--help"), _says(path, "export", "--help")
    )
    missing = [option for option in _NEEDED if not nsys.offers(option)]
    if missing:
        raise NoNsysError(f"nsys {nsys.version} ({path}) cannot record ({missing[0]} is not in its help)", _INSTALL)
    return nsys


def _says(path: str, *words: str) -> str:
    try:
        done = subprocess.run([path, *words], capture_output=True, check=False, timeout=_HELP_S)
    except PermissionError:
        raise NoNsysError(f"{path} may not be executed", f"have its permissions set, or {_INSTALL}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or "it does not answer"
        raise NoNsysError(f"{path} cannot be run ({reason})", _INSTALL) from None
    return (done.stdout + done.stderr).decode("utf-8", "replace")


@dataclass(frozen=True)
class Range:
    """The part of the program that is recorded."""

    delay_s: float
    duration_s: float
    profiler_range: bool


def profile(
    nsys: Nsys, program: Program, part: Range, report: Path, *, graph_nodes: bool, temporary: str | None
) -> list[str]:
    """Return the command that records the program. temporary: the program's own folder for temporary files."""
    traced = ",".join(_traced(nsys))
    wishes = {
        "--sample": "none",
        "--cpuctxsw": "none",
        "--cuda-graph-trace": "node" if graph_nodes else "graph",
        "--stop-on-exit": "true",
        "--force-overwrite": "true",
    }
    if program.python:
        wishes |= {"--python-sampling": "true", "--python-sampling-frequency": "1000"}
    if part.profiler_range:
        wishes |= {"--capture-range": "cudaProfilerApi", "--capture-range-end": "stop"}
    elif part.delay_s:
        wishes["--delay"] = str(math.ceil(part.delay_s))
    if temporary:
        wishes["--env-var"] = f"TMPDIR={temporary}"
    wishes |= {"--duration": str(math.ceil(part.duration_s)), "--kill": "sigterm"}  # a duration of 0 would never end
    name = str(report.with_suffix(""))
    if program.rank_variable:
        name = f"{name}.rank%q{{{program.rank_variable}}}"
    taken = [f"{option}={value}" for option, value in wishes.items() if nsys.offers(option)]
    return program.around([nsys.path, "profile", f"--trace={traced}", *taken, f"--output={name}"])


def _traced(nsys: Nsys) -> list[str]:
    """Return what is traced: plain `cuda` may trace by hardware on new drivers, which crashes some programs."""
    offered = set(re.findall(r"'([a-z-]+)'", nsys.profile_help))
    cuda = "cuda-sw" if "cuda-sw" in offered else "cuda"
    return [cuda, *(name for name in ("nvtx", "osrt") if name in offered or "cuda" not in offered)]


def without_nvtx(words: Sequence[str]) -> list[str]:
    """Return a recording's command that leaves NVTX ranges out; the command as it is where it traces none."""
    traced = next((word for word in words if word.startswith("--trace=")), "")
    kinds = [kind for kind in traced.removeprefix("--trace=").split(",") if kind != "nvtx"]
    return [f"--trace={','.join(kinds)}" if word == traced and traced else word for word in words]


def without(nsys: Nsys, program: Program) -> list[str]:
    """Return a sentence for each thing that this version cannot record."""
    lacking = []
    if program.python and not nsys.offers("--python-sampling"):
        lacking.append(f"nsys {nsys.version} cannot sample Python: the report will name no lines of it.")
    elif program.python and "--include-json" not in nsys.export_help:
        lacking.append(f"nsys {nsys.version} cannot export Python stacks: the report will name no lines of Python.")
    return lacking


def export(nsys: Nsys, report: Path, target: Path) -> list[str]:
    """Return the command that exports a report; an export that lies there already is never taken for the new one."""
    wishes = [f"{option}=true" for option in ("--include-json", "--lazy", "--quiet") if option in nsys.export_help]
    words = ["export", "--type=sqlite", "--force-overwrite=true", f"--output={target}", *wishes, str(report)]
    return [nsys.path, *words]


def harmless(words: list[str]) -> list[str]:
    """Return the options of a recording's command that say what was recorded, and nothing of the program."""
    kinds = (
        "--trace=",
        "--sample=",
        "--cpuctxsw=",
        "--python-",
        "--cuda-",
        "--delay=",
        "--duration=",
        "--capture-range",
    )
    return [word for word in words if word.startswith(kinds)]


def not_imported(log: Path) -> str:
    """Return what is said where nsys leaves a .qdstrm file and no report: its own reason, if its output has one."""
    try:
        with log.open("rb") as output:
            output.seek(max(0, log.stat().st_size - _LAST_BYTES))
            reasons = _ERROR_TEXT.findall(output.read())
    except OSError:
        reasons = []
    if not reasons:
        return f"{_NOT_IMPORTED}{_NO_IMPORTER}"
    reason = reasons[-1].decode("utf-8", "replace")
    if "VmTidToPidInfo" in reason:
        return f"{_NOT_IMPORTED}{_NUMBERS_AGAIN}"
    return f"{_NOT_IMPORTED}it says {reason!r}; record again, or with a newer nsys"
