"""GitHub workflow commands: printed in a step, each finding becomes an annotation at its line.

GitHub keeps ten annotations a level and step and drops the rest without a word: here a last notice says what was left
out. A finding without a line becomes a notice of the run; a report without findings, one notice with its verdict.
No `::error`: an error in a step that passes misleads, and whether the step passes is what --fail-on decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpudiag.model import Report
from gpudiag.report.github.annotation import Alert, alerts, also_at, subject
from gpudiag.text.escape import bare, visible

PER_LEVEL = 10  # annotations GitHub keeps of one step and level
COMMANDS = {"warning": "warning", "note": "notice"}


def render(report: Report, root: Path | None = None) -> str:
    """A command a line, ending in a newline. Paths are those of the checkout around `root`."""
    lines: list[str] = []
    left_out: list[Alert] = []
    room = {"warning": PER_LEVEL, "notice": PER_LEVEL - 1}  # the last notice may be needed
    for alert in alerts(report, root):
        name = COMMANDS[alert.level] if alert.spots else "notice"
        if room[name]:
            room[name] -= 1
            lines.append(_annotation(name, alert))
        else:
            left_out.append(alert)
    if left_out:
        what = "finding is" if len(left_out) == 1 else "findings are"
        codes = ", ".join(dict.fromkeys(bare(alert.finding.code) for alert in left_out))
        said = f"{len(left_out)} more {what} in the report: {codes}. GitHub shows {PER_LEVEL} annotations of a kind."
        lines.append(command("notice", {"title": "gpudiag"}, said))
    if not lines:
        lines.append(command("notice", {"title": "gpudiag"}, bare(report.verdict.text)))
    return "\n".join(lines) + "\n"


def _annotation(name: str, alert: Alert) -> str:
    finding = alert.finding
    place = {"file": visible(alert.spots[0].path), "line": str(alert.spots[0].line)} if alert.spots else {}
    about = "" if alert.spots else subject(finding)
    said = [
        f"Gain: {alert.headline}." if finding.gain.kind != "test_needed" else "",
        alert.message,
        f"Fix: {bare(finding.remedies[0].title)}." if finding.remedies else "",
        also_at(alert.spots),
        f"No line was recorded: look for {about}." if about else "",
    ]
    title = f"{alert.title} ({bare(finding.code)})"
    return command(name, {**place, "title": title}, "\n".join(filter(None, said)))


def command(name: str, properties: Mapping[str, str], message: str) -> str:
    """One workflow command, which no value can leave: see GitHub's toolkit, packages/core/src/command.ts."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    # Runners still know an older form of command, which may start anywhere in a line: ##[error].
    text = text.replace("##[", "## [")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
