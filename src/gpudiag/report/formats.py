"""The formats of a report: a sibling module each, behind one function `(Report) -> str`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpudiag.model import Report


class Format(NamedTuple):
    name: str
    module: str
    suffix: str
    about: str


# The first is the default.
ALL = (
    Format("markdown", "markdown", ".md", "for people; in colour on a terminal"),
    Format("json", "jsonformat", ".json", "for programs: the whole report"),
)
BY_NAME = {form.name: form for form in ALL}


def render(report: Report, name: str) -> str:
    """The report in the format of that name, ending in a newline."""
    module = import_module(f"gpudiag.report.{BY_NAME[name].module}")
    text: str = module.render(report)
    return text
