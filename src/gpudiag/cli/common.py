"""What every command does: hurry, say which stage is at work, deliver a text."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import click


def hurry() -> None:
    """A process of a second: collecting garbage costs a tenth of it, waiting for another thread's slice as much."""
    gc.disable()
    sys.setswitchinterval(0.0005)


def say(stage: str) -> None:
    click.echo(f"gpudiag: {stage}", err=True)


def ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def deliver(text: str, output: Path | None = None, in_colour: bool = False) -> None:
    from gpudiag.report.output import to_file, to_stdout

    if output is None:
        to_stdout(text, in_colour=in_colour)
    else:
        to_file(text, output)
