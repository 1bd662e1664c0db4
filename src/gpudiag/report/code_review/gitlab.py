"""GitLab's Code Quality report: what a merge request shows beside the diff.

One entry a finding that has a line, at its worst line that the checkout has: GitLab counts entries and knows one place
each, so the other lines stand in the text. A finding without a line has no place in this format.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from gpudiag.model import Finding, Report, Severity
from gpudiag.report.github.annotation import Alert, alerts, also_at
from gpudiag.report.json_format import tidy
from gpudiag.text.escape import bare, visible

# `blocker` is for what must not be merged: no profile can know that.
SEVERITIES: dict[Severity, str] = {"high": "critical", "medium": "major", "low": "minor", "info": "info"}


def render(report: Report, root: Path | None = None) -> str:
    """The array as indented ASCII JSON, ending in a newline. Paths are those of the checkout around `root`."""
    seen: Counter[str] = Counter()
    entries = [_entry(alert, seen) for alert in alerts(report, root) if alert.spots]
    return json.dumps(tidy(entries), indent=2, allow_nan=False) + "\n"


def _entry(alert: Alert, seen: Counter[str]) -> dict[str, Any]:
    spot = alert.spots[0]
    said = f"{alert.title}: {alert.headline}. {alert.message} {also_at(alert.spots)}"
    return {
        "description": said.strip(),
        "check_name": f"gpudiag/{bare(alert.finding.code)}",
        "fingerprint": _fingerprint(alert.finding, seen),
        "severity": SEVERITIES[alert.finding.severity],
        "location": {"path": visible(spot.path), "lines": {"begin": spot.line}},
    }


def _fingerprint(finding: Finding, seen: Counter[str]) -> str:
    """The finding's own, which names no time or line; GitLab drops the second of two alike: those are counted."""
    own = f"{finding.code}|{finding.fingerprint}"
    seen[own] += 1
    return hashlib.sha256(f"{own}|{seen[own]}".encode("utf-8", "replace")).hexdigest()[:32]
