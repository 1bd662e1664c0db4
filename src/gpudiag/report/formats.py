"""The formats of a report: a sibling module each, behind one function `(Report) -> str`."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from gpudiag.errors import GpudiagError
from gpudiag.text.escape import inert

if TYPE_CHECKING:
    from gpudiag.model import Report
    from gpudiag.timeline.model import Picture


class Format(NamedTuple):
    name: str
    module: str
    suffix: str
    about: str
    drawn: bool = False  # whether its module takes a picture of the captures as well


# The first is the default.
ALL = (
    Format("markdown", "markdown", ".md", "for people; in colour on a terminal"),
    Format("json", "json_format", ".json", "for programs: the whole report"),
    Format("html", "html.page", ".html", "for a browser: one page with timelines, to send or to keep", drawn=True),
    Format("checklist", "code_review.checklist", ".checklist.md", "for a code review: what to ask of each file"),
    Format("github-comment", "github.comment", ".comment.md", "for a pull request: findings in short, details folded"),
    Format("sarif", "code_review.sarif", ".sarif", "for GitHub code scanning and editors: findings that have a line"),
    Format(
        "github-annotations", "github.annotations", ".annotations", "printed in a GitHub step: findings at their lines"
    ),
    Format(
        "github-outputs", "github.outputs", ".outputs", "appended to $GITHUB_OUTPUT: verdict, number of findings, first"
    ),
    Format(
        "gitlab-codequality",
        "code_review.gitlab",
        ".codequality.json",
        "for GitLab merge requests: findings with a line",
    ),
)
BY_NAME = {form.name: form for form in ALL}


def named(name: str) -> Format:
    """The format of that name. Raises GpudiagError."""
    if name not in BY_NAME:
        raise GpudiagError(f"There is no format {name!r}: there are {', '.join(BY_NAME)}.")
    return BY_NAME[name]


def of_file(path: PurePath) -> Format | None:
    """The format that the file's name ends in; of several with one suffix the first."""
    name = path.name.lower()
    name = f"{name}l" if name.endswith(".htm") else name
    ending = [form for form in ALL if name.endswith(form.suffix)]
    return max(ending, key=lambda form: len(form.suffix), default=None)


def suffixes() -> str:
    """The suffixes that name a format, in words: `.md (markdown) or .json (json)`."""
    first = [form for form in ALL if of_file(PurePath(f"report{form.suffix}")) is form]
    words = [f"{form.suffix} ({form.name})" for form in first]
    return " or ".join([", ".join(words[:-1]), words[-1]])


def render(report: Report, name: str, picture: Picture | None = None) -> str:
    """The report in the format of that name, ending in a newline; `picture` is for those that are drawn."""
    form = BY_NAME[name]
    module = import_module(f"gpudiag.report.{form.module}")
    text: str = module.render(report, picture) if form.drawn else module.render(report)
    return _spoken_only(text, form)


def _spoken_only(text: str, form: Format) -> str:
    """The text without what GitHub's runner would take for a command, printed in a step: each format has another way
    to write a character so that its readers see the same.
    """
    if form.suffix.endswith((".json", ".sarif")):
        return text.replace("##[", "#\\u0023[")
    if form.suffix == ".html":
        return text.replace("##[", "#&#35;[")
    return inert(text) if form.suffix.endswith(".md") else text
