"""Nsight Systems reports (.nsys-rep, .qdrep): exported by the user's own `nsys`, because the format is private.

Every version has its own options: what `nsys export --help` names is used, and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.ingest import tool

TIMEOUT_S = 1800.0
"""A report of 10 GB exports in a few minutes; a hung tool must not hang us."""

_HELP_S = 30.0
_SAID = 65_536
"""Bytes of what nsys printed that are looked at: its progress bar alone may print megabytes."""

# Wanted where the version has them; the two that every version since 2020 has are always given.
_WISHES = {"--include-json": "true", "--lazy": "true", "--quiet": "true"}
_FOLDER = "parquetdir"
"""Faster to write and to read than SQLite. The first versions that have it leave the options of the capture out of it;
those have no `--include-json` either.
"""


def export(path: Path, workdir: Path, name: Path | None = None, timeout_s: float = TIMEOUT_S) -> Path:
    """Export a report into `workdir`: a Parquet folder, or an SQLite file where this nsys writes no such folder.

    `name` is the user's file, of which `path` may be the content.
    Raises GpudiagError when nsys is missing, refuses the report, or does not finish within `timeout_s` seconds.
    """
    name = name or path
    nsys = shutil.which("nsys")
    if nsys is None:
        raise GpudiagError(
            f"{name}: reading a report needs `nsys`, which is not on the PATH; where it is, run"
            f" `nsys export --type=sqlite --output={name.stem[:60]}.sqlite {name.name}` (with --include-json=true if"
            " your nsys knows it) and give the .sqlite file."
        )
    env = {**os.environ, "TMPDIR": str(workdir), "LC_ALL": "C"}
    said = _help(nsys, env, workdir)
    offered = _options(said)
    wishes = [f"{option}={value}" for option, value in _WISHES.items() if option in offered]
    targets = {_FOLDER: workdir / "export"} if _FOLDER in said and "--include-json" in offered else {}
    targets["sqlite"] = workdir / "export.sqlite"
    deadline = time.monotonic() + timeout_s
    refused = ""
    for kind, target in targets.items():
        command = [nsys, "export", f"--type={kind}", "--force-overwrite=true", f"--output={target}", *wishes]
        try:
            refused = _run([*command, str(path.resolve())], env, target, deadline)
        except subprocess.TimeoutExpired:
            raise GpudiagError(
                f"{name}: `nsys export` did not finish within {timeout_s:.0f} s; export it yourself with"
                " `nsys export --type=sqlite` and give the .sqlite file."
            ) from None
        except OSError as error:
            raise GpudiagError(f"{name}: `nsys` cannot be run ({error.strerror}); install it again.") from None
        if not refused:
            return target
    version = _version(nsys, env)
    shown = f" of version {'.'.join(map(str, version))}" if version else ""
    refused = refused.replace(str(path.resolve()), name.name)
    raise GpudiagError(f"{name}: `nsys export`{shown} {refused}; {_advice(path, version)}.")


def _help(nsys: str, env: Mapping[str, str], folder: Path) -> str:
    """Return the output of `nsys export --help`; empty where it cannot be run, which leaves the options of all
    versions.
    """
    with (folder / "nsys-help.txt").open("w+b") as said:
        try:
            tool.run([nsys, "export", "--help"], env, folder, said, said, _HELP_S)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return tool.tail(said, _SAID)


def _options(said: str) -> frozenset[str]:
    """The long options that a help text lists: one a line, perhaps after its short form."""
    return frozenset(re.findall(r"^\s*(?:-\w, )?(--[a-z][a-z-]*)", said, re.MULTILINE))


def _run(command: list[str], env: Mapping[str, str], target: Path, deadline: float) -> str:
    """Run one export: nothing where it wrote a whole one, else why not, and what it left behind is taken away."""
    with (target.parent / "nsys.out").open("w+b") as out, (target.parent / "nsys.err").open("w+b") as err:
        code = tool.run(command, env, target.parent, out, err, max(deadline - time.monotonic(), 1.0))
        if code == 0 and _is_whole(target):
            return ""
        words = reason(f"{tool.tail(err, _SAID)}\n{tool.tail(out, _SAID)}")
    # An export that failed half-way has all tables and a part of the rows.
    if target.is_dir():
        shutil.rmtree(target, ignore_errors=True)
    target.unlink(missing_ok=True)
    if number := tool.ended_by(code):
        return f"was ended by signal {number}"
    if code:
        return f"says: {words}" if words else f"failed with exit code {code} and said nothing"
    return "wrote nothing" + (f" and says: {words}" if words else "")


def _is_whole(target: Path) -> bool:
    """Return whether the export exists with its capture options; the rest of what SQLite holds is read later."""
    if target.is_dir():
        return any(target.glob("*META_DATA_CAPTURE.parquet"))
    return target.is_file() and target.stat().st_size > 0


def _version(nsys: str, env: Mapping[str, str]) -> tuple[int, ...]:
    """The tool's version, as far as the year and two numbers: the usual reason why it refuses a report."""
    try:
        done = subprocess.run([nsys, "--version"], env=env, capture_output=True, timeout=_HELP_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ()
    return _numbers(re.search(rb"version (\d{4})\.(\d+)\.(\d+)", done.stdout))


def _advice(path: Path, version: tuple[int, ...]) -> str:
    """Say what to do with a report that was refused; reports since 2023 begin with the version that made them."""
    with path.open("rb") as file:
        made = _numbers(re.search(rb"Tegra Profiler Report (\d{4})@(\d+)@(\d+)", file.read(200)))
    if not made:
        return (
            "it may be damaged, or newer than this nsys: export it with the nsys that recorded it and give the"
            " .sqlite file"
        )
    if made <= version:
        return "it is not newer than this nsys, so it may be damaged: copy it again"
    shown = ".".join(map(str, made))
    return f"it was made by version {shown}: export it with that one or a newer one and give the .sqlite file"


def _numbers(found: re.Match[bytes] | None) -> tuple[int, ...]:
    return tuple(int(number) for number in found.groups()) if found else ()


_LONGEST = 240

_CANNOT_PARSE = re.compile(r"Can't parse message|ProtobufParseException|ParseFromString")
_PREFIX = re.compile(r"^(?:Exportation error|Error|error|FATAL ERROR|nsys|Importer error status)\s*:\s*")
# Lines that say that it failed, what it is doing, or where in its own source it was: never why.
_NOISE = re.compile(
    r"""^(?:
      Failed\ to\ export\ report\.?$ | \[libprotobuf | .*\.cpp\(\d+\):\ Throw\ in\ function | Dynamic\ exception\ type
      | std::exception::what | \[\w*.*\*\]\ = | usage: | Try\ 'nsys | args:$ | Processing\b.*\[ | \[?\d+/\d+\]
      | .*\[=*\s*\d+\s?%\s*\]?$ | (?:Warning|WARNING)\b | Generated: | Generating\b
    )""",
    re.VERBOSE,
)


def reason(said: str) -> str:
    """The sentence that says why, of all that it printed; nothing where there is none.

    Where another sentence only tells to update nsys, it is left out: what to do is said here for every version alike.
    """
    lines = [line.rpartition("\r")[2].strip() for line in said.replace("\r\n", "\n").split("\n")]
    summary = [_PREFIX.sub("", line) for line in lines if line]
    summary = [line for line in summary if line and not _NOISE.match(line)]
    if summary:
        return summary[0][:_LONGEST].rstrip(" .")
    if _CANNOT_PARSE.search(said):
        return "it cannot parse the report"
    rest = [line for line in lines if line]
    return rest[-1][:_LONGEST].rstrip(" .") if rest else ""
