"""A report in a few words for the next steps of a GitHub workflow: lines for the file that $GITHUB_OUTPUT names."""

from __future__ import annotations

import re

from gpudiag.model import Report

_CODE = re.compile(r"[A-Z]+[0-9]{2,3}")


def render(report: Report) -> str:
    """`state`, `findings` (their number) and `code` (of the first), a line each."""
    first = report.findings[0].code if report.findings else ""
    # A saved report may hold anything, and a line feed in a value would begin another output.
    code = first if _CODE.fullmatch(first) else ""
    return f"state={report.verdict.state}\nfindings={len(report.findings)}\ncode={code}\n"
