"""SARIF 2.1.0, which GitHub code scanning and editors read: a rule a cause, a result a finding that has a line.

One result a finding, not one a line: GitHub shows the first of a result's `locations` and drops the others, and
makes an alert of each result, which someone then has to fix or dismiss. So the worst line that the checkout has is
the location, and the other lines are `relatedLocations`, which the message links to.

Findings without a line would be alerts without a place, which GitHub refuses: they become notifications of the run.
`primaryLocationLineHash` is left to GitHub's upload action: it computes it from the source, and warns of any other.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpudiag.model import Finding, Gain, Place, Report
from gpudiag.report.code_review.source_paths import Spot
from gpudiag.report.github.annotation import OTHERS, Alert, alerts, line_of, subject
from gpudiag.report.json_format import tidy
from gpudiag.report.wording import words
from gpudiag.text.escape import authored, bare, prose, terminal
from gpudiag.text.format import pct

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT, ELSEWHERE = "%SRCROOT%", "RECORDED"
BASES = {
    ROOT: {"description": {"text": "The checkout."}},
    ELSEWHERE: {"description": {"text": "Where the program ran; the checkout has no such file."}},
}
_BRACKET, _ESCAPED = re.compile(r"([][\\])"), r"\\\1"
TAGS = ["performance", "gpu"]


def render(report: Report, root: Path | None = None) -> str:
    """The log as indented ASCII JSON, ending in a newline. Paths are those of the checkout around `root`."""
    found = alerts(report, root)
    codes = list(dict.fromkeys(alert.finding.code for alert in found if alert.spots))
    first = {alert.finding.code: alert for alert in reversed(found)}
    shares: dict[int | None, float] = {loop.id: loop.share_of_span for loop in report.run.loops}
    driver = {
        "name": "gpudiag",
        "version": bare(report.tool.version),
        "rules": [_rule(first[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": BASES,
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(alert) for alert in found if not alert.spots],
            }
        ],
        "results": [
            _result(alert, codes.index(alert.finding.code), shares.get(alert.finding.gain.loop, 1.0))
            for alert in found
            if alert.spots
        ],
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict.state, "text": bare(report.verdict.text)},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(tidy(log), indent=2, allow_nan=False) + "\n"


def _rule(alert: Alert) -> dict[str, Any]:
    finding = alert.finding
    name = "".join(part.capitalize() for part in re.findall(r"[A-Za-z0-9]+", finding.id))
    return {
        "id": bare(finding.code),
        **({"name": name[:200]} if name else {}),
        "shortDescription": {"text": alert.title},
        "fullDescription": {"text": bare(finding.why, 1000)},
        "defaultConfiguration": {"level": alert.level},
        "help": {"text": _help_text(finding), "markdown": _help_markdown(finding)},
        "properties": {"tags": TAGS, "precision": finding.confidence},
    }


def _help_markdown(finding: Finding) -> str:
    """Return the reasons, remedies and checks that the Markdown report writes below a finding's figures."""
    parts = [f"**Why it costs time:** {authored(finding.why)}"]
    for remedy in finding.remedies:
        framework = words.FRAMEWORKS[remedy.framework]
        parts.append(f"**Fix: {prose(remedy.title)}**{f' ({framework})' if framework else ''}")
        parts.append(authored(remedy.text))
    if finding.check:
        parts.append(f"**How to check it:** {authored(finding.check)}")
    parts.append(f"**When it is not a problem:** {authored(finding.not_a_problem_when)}")
    return "\n\n".join(parts)


def _help_text(finding: Finding) -> str:
    fixes = "; ".join(bare(remedy.title) for remedy in finding.remedies)
    parts = [f"Why it costs time: {terminal(finding.why)}"]
    parts += [f"To fix it: {fixes}."] if fixes else []
    parts += [f"When it is not a problem: {terminal(finding.not_a_problem_when)}"]
    return "\n\n".join(parts)


def _result(alert: Alert, rule_index: int, loop_share: float) -> dict[str, Any]:
    finding, spots = alert.finding, alert.spots
    gain = finding.gain
    return {
        "ruleId": bare(finding.code),
        "ruleIndex": rule_index,
        "level": alert.level,
        **({} if gain.kind == "test_needed" else {"rank": _rank(gain, loop_share)}),
        "message": {"text": _message(alert)},
        "locations": [_location(spots[0], finding.where[spots[0].place])],
        "relatedLocations": [
            {
                "id": i,
                **_location(spot, finding.where[spot.place]),
                "message": {"text": _share(finding.where[spot.place])},
            }
            for i, spot in enumerate(spots[1:], 1)
        ],
        "partialFingerprints": {"gpudiag/v1": bare(finding.fingerprint, 100)},
        "properties": {
            "rank": finding.rank,
            "status": finding.status,
            "confidence": finding.confidence,
            "gain": gain.model_dump(exclude={"test"}),
        },
    }


def _rank(gain: Gain, loop_share: float) -> float:
    """0 to 100: the part of all steady time that the fix saves, alone or once those ranked before it are made."""
    before, after = gain.cumulative_before_ms, gain.cumulative_after_ms
    then = 1 - after / before if before and after is not None else 0.0
    worth = max(gain.share, then) * (loop_share if gain.basis == "loop" else 1.0)
    return min(max(100 * worth, 0.0), 100.0) if math.isfinite(worth) else 0.0


def _message(alert: Alert) -> str:
    """Plain sentences, then links to the other lines. A name cannot make a link: `](` never stays together."""
    said = f"{alert.title}: {alert.headline}. {alert.message}".replace("](", "] (")
    links = [
        f"[{_BRACKET.sub(_ESCAPED, line_of(spot, alert.spots[0]))}]({i})"
        for i, spot in enumerate(alert.spots[1 : OTHERS + 1], 1)
    ]
    return f"{said} Also at {', '.join(links)}." if links else said


def _location(spot: Spot, place: Place) -> dict[str, Any]:
    uri = quote(spot.path, safe="/", errors="replace")
    function = bare(place.function or "")
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": ROOT if spot.present else ELSEWHERE},
            "region": {"startLine": spot.line},
        },
        **({"logicalLocations": [{"name": function, "kind": "function"}]} if function else {}),
    }


def _share(place: Place) -> str:
    where = f"in {bare(place.function)}" if place.function else "here"
    return where if place.share is None else f"{where}: {pct(place.share)} of this cost"


def _notification(alert: Alert) -> dict[str, Any]:
    about = subject(alert.finding)
    named = f" ({about})" if about else ""
    text = f"{bare(alert.finding.code)}, no line recorded{named}: {alert.title}: {alert.headline}. {alert.message}"
    return {"level": alert.level, "message": {"text": text.replace("](", "] (")}}
