"""The recorder where nothing else is installed: `python -m gpudiag.capture`, or the single file of `--write-recorder`.

It has the options of `gpudiag capture` and the same words, but explains nothing.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from gpudiag.capture import plan as defaults
from gpudiag.capture.plan import Plan
from gpudiag.capture.session import capture
from gpudiag.errors import GpudiagError

_POWERS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0}


def _steps(text: str) -> tuple[int, int]:
    few, _, many = text.partition(":")
    return int(few), int(many)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|)", text)
    if not found:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2]]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)B?", text, re.IGNORECASE)
    if not found:
        raise ValueError(text)
    return int(float(found[1]) * _POWERS[found[2].upper()])


def options() -> argparse.ArgumentParser:
    """Return the options, which are those of `gpudiag capture` without the ones about the report."""
    parser = argparse.ArgumentParser(
        prog="python -m gpudiag.capture", description="Record a program with Nsight Systems, for `gpudiag explain`."
    )
    parser.add_argument("-d", "--output-dir", dest="output", type=Path, default=Path(defaults.FOLDER))
    parser.add_argument("--steps", type=_steps)
    parser.add_argument("--runs", type=int, default=defaults.RUNS)
    parser.add_argument("--warm-up", type=int, default=defaults.WARM_UP)
    parser.add_argument("--delay", dest="delay_s", type=_seconds)
    parser.add_argument("--duration", dest="duration_s", type=_seconds, default=defaults.DURATION_S)
    parser.add_argument("--limit", dest="limit_s", type=_seconds, default=defaults.LIMIT_S)
    parser.add_argument("--max-size", type=_bytes, default=defaults.SIZE)
    for flag in ("--profiler-range", "--graph-nodes", "--keep-report", "--dry-run"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("command", nargs="+")
    return parser


def _say(sentence: str) -> None:
    sys.stderr.write(f"gpudiag: {sentence}\n")


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Record, and print the command that explains the files."""
    given = options().parse_args(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        captured = capture(Plan(**{**vars(given), "command": tuple(given.command)}, say=_say))
    except GpudiagError as error:
        _say(str(error))
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    if captured:
        sys.stdout.write(f"{captured.explain_command()}\n")
    raise SystemExit(0)


if __name__ == "__main__":
    main()
