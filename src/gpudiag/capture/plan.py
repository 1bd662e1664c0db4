"""Wishes of whoever records a program: the command, how long, how often, and where the files go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpudiag.capture import thresholds
from gpudiag.capture.thresholds import Thresholds
from gpudiag.errors import GpudiagError

STEPS = "{steps}"
"""Stands in the command for the number of steps that the program is to run."""

# What is asked for where nothing is given; a report states what it was. None of these decides what is found in it.
FOLDER = "gpudiag-capture"
WARM_UP = 10
RUNS = 3
DURATION_S = 30.0
LIMIT_S = 600.0
SIZE = 2_000_000_000


def _silent(_: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Plan:
    """One recording as it was asked for; the defaults are those of `gpudiag capture`."""

    command: tuple[str, ...]
    output: Path = Path(FOLDER)
    steps: tuple[int, int] | None = None
    """Two numbers of steps for `{steps}` in the command: their runs' difference gives the time of a step."""
    runs: int = RUNS
    """Fresh processes for the time without a profiler; 0 measures nothing."""
    warm_up: int = WARM_UP
    """Optimizer steps that are not counted."""
    delay_s: float | None = None
    """Seconds after the program's start at which recording begins; None derives it from the run without a profiler."""
    duration_s: float = DURATION_S
    """Most seconds that are recorded; the program is ended then."""
    limit_s: float = LIMIT_S
    """Most seconds that one run may take; a program that does not end is ended then."""
    max_size: int = SIZE
    """Bytes at which recording stops."""
    profiler_range: bool = False
    """Record between cudaProfilerStart and cudaProfilerStop of the program, and nothing else."""
    graph_nodes: bool = False
    """Record the kernels inside CUDA graphs one by one."""
    keep_report: bool = False
    """Keep the .nsys-rep, too, which holds the program's environment."""
    dry_run: bool = False
    say: Callable[[str], None] = _silent
    """Hears each step and each command line."""
    thresholds: Thresholds = field(default_factory=thresholds.load)

    def checked(self) -> Plan:
        """Return the plan. Raises GpudiagError where it contradicts itself."""
        if not self.command:
            raise GpudiagError("capture needs a command, such as `gpudiag capture -- python train.py`.")
        has_place = any(STEPS in word for word in self.command)
        if self.steps and not has_place:
            raise GpudiagError(f"--steps needs {STEPS} in the command, where the program takes its number of steps.")
        if has_place and not self.steps:
            raise GpudiagError(f"{STEPS} in the command needs --steps, such as --steps 50:150.")
        if self.steps and not 0 < self.steps[0] < self.steps[1]:
            raise GpudiagError("--steps wants a smaller and a larger number of steps, such as 50:150.")
        return self

    def words(self, steps: int | None = None) -> list[str]:
        """Return the command with a number of steps; the larger one where none is given."""
        count = steps if steps is not None else self.steps[1] if self.steps else 0
        return [word.replace(STEPS, str(count)) if self.steps else word for word in self.command]
