"""A report as an object: frames to ask, texts to keep, a page for notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape as html_escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag import model
from gpudiag.api.arguments import AnyPath, path_of
from gpudiag.errors import GpudiagError

if TYPE_CHECKING:
    import polars as pl

    from gpudiag.timeline.model import Picture

PRINTED = 5
"""Findings that `print(report)` names."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A report: the causes of lost time, their places, and the gain of each fix. Equal reports are equal; none ever
    changes.

    `data` is the whole report, a frozen model with the keys of the JSON report. The frames are made anew each time, so
    they are yours to change; docs/python.md lists their columns.
    """

    data: model.Report
    _picture: Picture | None = field(default=None, compare=False)  # the timelines of the page; a saved report has none

    @property
    def verdict(self) -> model.Verdict:
        """`state`: problems, healthy or cannot_tell; `text`: the same in a sentence."""
        return self.data.verdict

    @property
    def findings(self) -> pl.DataFrame:
        """A row a finding, in the order in which to fix them, with its gain and its worst place."""
        return self._frame("findings")

    @property
    def minor(self) -> pl.DataFrame:
        """As `findings`: what was found, but is worth too little to be one."""
        return self._frame("minor")

    @property
    def places(self) -> pl.DataFrame:
        """A row a place that a finding names."""
        return self._frame("places")

    @property
    def loops(self) -> pl.DataFrame:
        """A row a loop, with where its time goes."""
        return self._frame("loops")

    @property
    def kernels(self) -> pl.DataFrame:
        """A row a kernel that Nsight Compute measured."""
        return self._frame("kernels")

    @property
    def loop_kernels(self) -> pl.DataFrame:
        """A row a kernel of a loop on the timeline."""
        return self._frame("loop_kernels")

    def render(self, format: str = "markdown") -> str:  # noqa: A002 - the command line's word
        """The report as text, in any format of `gpudiag explain --format`. Raises GpudiagError for another."""
        from gpudiag.report import formats

        return formats.render(self.data, formats.named(format).name, self._picture)

    def to_markdown(self) -> str:
        return self.render("markdown")

    def to_json(self) -> str:
        """The JSON report, which `gpudiag.read` and other programs read."""
        return self.render("json")

    def to_dict(self) -> dict[str, Any]:
        """The JSON report's content."""
        from gpudiag.report import json_format

        content: dict[str, Any] = json_format.tidy(self.data.model_dump())
        return content

    def save(self, path: AnyPath, format: str | None = None) -> Path:  # noqa: A002
        """Write the report, whole or not at all, in the format that the file's suffix names unless `format` does.

        Raises GpudiagError when neither names a format, or the file cannot be written.
        """
        from gpudiag.report import formats, output

        place = path_of(path)
        form = formats.named(format) if format else formats.of_file(place)
        if form is None:
            raise GpudiagError(f"{place} has no suffix that names a format: end it in {formats.suffixes()}.")
        output.to_file(self.render(form.name), place)
        return place

    def plot(self) -> Any:
        """A matplotlib figure: where the time of the loops goes, an iteration as a timeline, the roofline of profiled
        kernels; each where there is something to draw. A report that was read from JSON has no timeline.

        Needs the extra `notebook`. Raises GpudiagError where it is missing, and where nothing can be drawn.
        """
        from gpudiag.report import figure

        return figure.draw(self.data, self._picture)

    def __str__(self) -> str:
        """The verdict and the first findings, a line each."""
        from gpudiag.text.escape import one_line

        lines = [self.verdict.text]
        for finding in self.data.findings[:PRINTED]:
            place = next((f" ({p.file}:{p.line})" for p in finding.where if p.file and p.line), "")
            lines.append(f"{finding.rank}. {finding.code} {finding.title}{place}")
        more = len(self.data.findings) - PRINTED
        return "\n".join([*map(one_line, lines), *([f"… and {more} more"] if more > 0 else [])])

    def __repr__(self) -> str:
        from gpudiag.text.escape import middle, one_line

        files = ", ".join(item.file for item in self.data.inputs) or "nothing"
        found = f"{len(self.data.findings)} finding{'' if len(self.data.findings) == 1 else 's'}"
        return f"<gpudiag.Report of {middle(one_line(files), 60)}: {self.verdict.state}, {found}>"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str | None:
        """For notebooks: the page in a frame of its own. None, so that Markdown is shown, where there is no page."""
        from gpudiag.report import formats

        return in_frame(self.render("html"), self.verdict.text) if "html" in formats.BY_NAME else None

    def _frame(self, name: str) -> pl.DataFrame:
        from gpudiag.api import frames

        frame: pl.DataFrame = getattr(frames, name)(self.data)
        return frame


def in_frame(page: str, instead: str) -> str:
    """A whole HTML page inside another: neither sees the other's styles, and its scripts cannot reach the notebook.

    `instead` is what a viewer that shows no frames has.
    """
    style = "width:100%;height:40rem;border:1px solid #8884;border-radius:4px;resize:vertical;overflow:auto"
    rights = "allow-scripts allow-popups allow-popups-to-escape-sandbox"
    return (
        f'<iframe title="gpudiag report" sandbox="{rights}" allow="clipboard-write" style="{style}"'
        f' srcdoc="{html_escape(page)}">{html_escape(instead)}</iframe>'
    )
