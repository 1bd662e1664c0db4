"""Gains of which the interval says more than the expectation: from next to nothing to a good part of the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpudiag.model import Finding, Gain


def marked(findings: Iterable[Finding], settings: Mapping[str, float]) -> list[Finding]:
    """The findings, those whose gain may be next to nothing marked as uncertain: pages then say the range first."""
    return [
        finding.model_copy(update={"gain": finding.gain.model_copy(update={"uncertain": True})})
        if _uncertain(finding.gain, settings)
        else finding
        for finding in findings
    ]


def _uncertain(gain: Gain, settings: Mapping[str, float]) -> bool:
    if gain.kind != "expected" or gain.interval is None:
        return False
    least, most = gain.interval
    return least < settings["range_first"] and most - least > settings["wide_interval"]
