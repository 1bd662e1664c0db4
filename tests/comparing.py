"""Synthetic reports for comparisons: a loop, a report of it, a finding in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation import corpus
from gpudiag.compare import compare
from gpudiag.model import Diff, Finding, Gain, KernelUse, Loop, Place, Report, Run, Tool, Verdict

SETTINGS = corpus.library().setting_values
BUDGET_PARTS = corpus.library().budget_parts
BUSY = {"compute": 0.97, "idle_other": 0.03}
WAITING = {"compute": 0.3, "idle_launch": 0.7}
BLUR = KernelUse(name="blur", launches=1, ms=9.0)
KERNELS = (KernelUse(name="gemm", launches=10, ms=8.0), KernelUse(name="relu", launches=20, ms=1.5))


def loop(ms: float = 10.0, **changes: Any) -> Loop:
    values: dict[str, Any] = {
        "id": 1, "name": "step", "nvtx_path": "step", "source": "nvtx", "iterations": 20, "iteration_ms": ms,
        "share_of_span": 1.0, "budget": BUSY, "launches": 30.0, "calls": 40.0, "kernels": KERNELS,
    }  # fmt: skip
    return Loop.model_validate(values | changes, extra="ignore")


def report(*loops: Loop, findings: Sequence[Finding] = (), **changes: Any) -> Report:
    run = {"devices": ("GPU A",), "frameworks": ("pytorch",), "programs": ("python3",), "loops": loops} | changes
    return Report(
        tool=Tool(version="0"), inputs=(), verdict=Verdict(state="healthy", text="Synthetic."),
        run=Run.model_validate(run), findings=tuple(findings),
    )  # fmt: skip


def finding(code: str = "S01", **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rank": 1, "code": code, "id": "a-cause", "status": "stable", "title": "A cause", "severity": "high",
        "confidence": "high", "fingerprint": "aa", "message": "", "why": "", "not_a_problem_when": "",
        "gain": Gain(kind="expected", basis="loop", loop=1, before_ms=10.0, after_ms=6.0, share=0.4),
        "where": (Place(file="/a/train.py", line=10, function="step"),),
    }  # fmt: skip
    return Finding.model_validate(values | changes)


def between(base: Report, head: Report, **times: Any) -> Diff:
    return compare([base], [head], SETTINGS, BUDGET_PARTS, **times)
