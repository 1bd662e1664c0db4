"""`gpudiag redact`."""

from __future__ import annotations

from pathlib import Path

import click

from gpudiag.cli.arguments import deliver, ended
from gpudiag.cli.completion import captures
from gpudiag.cli.sections import FAILED, Command

REMOVES = (
    ("environment", "of the program and of every process that nsys listed; secrets also where they stand elsewhere"),
    ("command line", "the program's arguments, its working folder, and what it printed"),
    ("people and machine", "user names, host names, home folders, network cards, GPU identifiers, other processes"),
)
KEEPS = (
    ("events", "times, kernel names, NVTX texts: the report is the same, but for a home folder in a path"),
    ("files", "paths of Python files, with /home/user in place of a home folder"),
)


@click.command(
    "redact",
    cls=Command,
    sections={"Removes": REMOVES, "Keeps": KEEPS, "Exit codes": (("0", "done"), FAILED)},
    examples=(
        ("gpudiag redact report.sqlite", "writes report.redacted.sqlite"),
        ("gpudiag redact report.sqlite -o for-the-issue.sqlite", ""),
    ),
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, readable=False), shell_complete=captures)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(path_type=Path),
    help="Write the cleaned copy here; it must not be there yet.  [default: FILE with .redacted in its name]",
)
def redact_command(file: Path, output: Path | None) -> None:
    """Clean an SQLite export of Nsight Systems, so that it can be shared.

    FILE is what `nsys export --type=sqlite` wrote. It is only read: a cleaned copy is written anew, without free pages
    or a log, and searched for what was removed. Look at the names of kernels, NVTX ranges and files before you share
    it: those are the program's own words, and stay.
    """
    from gpudiag.capture.redact import redact

    target = output or file.with_name(f"{file.stem}.redacted{file.suffix}")
    removed = redact(file, target)
    lines = [f"{target}: removed", *(f"  {count:>7,}  {what}" for what, count in sorted(removed.items()))]
    deliver(ended("\n".join(lines if removed else [f"{target}: there was nothing to remove"])))
