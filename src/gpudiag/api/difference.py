"""The change between two reports, as an object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudiag import model
from gpudiag.api.arguments import AnyPath, path_of
from gpudiag.errors import GpudiagError

if TYPE_CHECKING:
    import polars as pl


class DiffVerdict(NamedTuple):
    """`state`: regression, improvement, noise, cannot_tell or incomparable; `text`: the same in a sentence."""

    state: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """The change from base to head.

    `data` is all of it, a frozen model with the keys that `gpudiag diff --format json` writes.
    """

    data: model.Diff

    @property
    def verdict(self) -> DiffVerdict:
        return DiffVerdict(self.data.state, self.data.text)

    @property
    def loops(self) -> pl.DataFrame:
        """A row a loop that both sides have."""
        return self._frame("diff_loops")

    @property
    def findings(self) -> pl.DataFrame:
        """A row a finding of either side, with its state: new, gone, better, worse, now_visible and so on."""
        return self._frame("diff_findings")

    @property
    def kernels(self) -> pl.DataFrame:
        """A row a kernel of a loop that takes longer or shorter, is new or gone, the largest change first."""
        return self._frame("diff_kernels")

    def to_markdown(self) -> str:
        from gpudiag.report import diff

        return diff.markdown(self.data)

    def to_json(self) -> str:
        from gpudiag.report import diff

        return diff.as_json(self.data)

    def to_dict(self) -> dict[str, Any]:
        from gpudiag.report import json_format

        content: dict[str, Any] = json_format.tidy(self.data.model_dump())
        return content

    def save(self, path: AnyPath) -> Path:
        """Write it as Markdown (.md) or JSON (.json). Raises GpudiagError for another suffix, or a bad place."""
        from gpudiag.report import output

        place = path_of(path)
        made = {".md": self.to_markdown, ".json": self.to_json}.get(place.suffix.lower())
        if made is None:
            raise GpudiagError(f"{place} has no suffix that names a format: end it in .md (markdown) or .json (json).")
        output.to_file(made(), place)
        return place

    def __str__(self) -> str:
        """The verdict and what is new, worse, gone or better, a line each."""
        from gpudiag.report import diff

        return diff.text(self.data).rstrip()

    def __repr__(self) -> str:
        from gpudiag.text.escape import middle, one_line

        before, now = (middle(one_line(", ".join(side.files)), 40) for side in (self.data.base, self.data.head))
        return f"<gpudiag.Diff of {before} and {now}: {self.data.state}>"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _frame(self, name: str) -> pl.DataFrame:
        from gpudiag.api import frames

        frame: pl.DataFrame = getattr(frames, name)(self.data)
        return frame
