"""The user's options besides the files: rules, thresholds, times, and the limits on reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpudiag.selection.spec import ALL, Selection

Progress = Callable[[str], None]


def _silent(_: str) -> None:
    """No progress is wanted."""


@dataclass(frozen=True, slots=True)
class Options:
    """Choices for reading and judging captures; the defaults judge all of them by the packaged rules."""

    rule_dirs: Sequence[Path] = ()
    overrides: Mapping[str, float] = field(default_factory=dict)
    """`CODE.param` or `settings.name` → another threshold."""
    iteration_times: Mapping[str, float] = field(default_factory=dict)
    """Loop name (or "" for the longest loop) → unprofiled time of one iteration in ns."""
    progress: Progress = _silent
    cached: bool = True
    """Whether large captures are looked for in the user's cache, and kept there."""
    selection: Selection = ALL
    memory_limit: int | None = None
    """Bytes that the process may take, about; None takes what the captures need (gpudiag.memory)."""
    workers: int | None = None
    """Processes that read the ranks of a job; None reads them one after another."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers read the ranks of a job."""

    @property
    def judging(self) -> bool:
        """Return whether anything is asked that a saved report can no longer answer."""
        return bool(self.rule_dirs or self.overrides or self.iteration_times or self.selection)
