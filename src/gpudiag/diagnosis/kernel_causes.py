"""Causes of each profiled kernel's time: the rules that fired on it, each priced on one launch of it.

A finding joins all kernels that a rule fired on, and tells the worst. Here each kernel keeps its own causes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import duckdb

from gpudiag.diagnosis.kernels import groups, sane
from gpudiag.evaluate.engine import Evaluation
from gpudiag.evaluate.rule_sentences import message, title
from gpudiag.model import SEVERITIES, Cause, Finding, Kernel, Row, Rule
from gpudiag.replay.gains import gain
from gpudiag.replay.priced_finding import PricedFinding

Connection = duckdb.DuckDBPyConnection


def with_causes(
    con: Connection,
    kernels: Sequence[Kernel],
    evaluation: Evaluation,
    findings: Sequence[Finding],
    settings: Mapping[str, float],
) -> tuple[Kernel, ...]:
    """The kernels with their causes, worth most first, and the rules that could not judge them.

    findings: all that the report holds, those listed before the minor ones.
    """
    members = groups(con)
    at = {profile: index for index, (profiles, _) in enumerate(members) for profile in profiles}
    ranks: dict[str, int] = {}
    for finding in findings:
        ranks.setdefault(finding.code, finding.rank)
    causes = _causes(evaluation, at, ranks, settings)
    blind: dict[int, set[str]] = defaultdict(set)
    for code, gap in evaluation.gaps:
        if gap.profile in at:
            blind[at[gap.profile]].add(code)
    return tuple(
        kernel.model_copy(
            update={
                "share": min(1.0, max(0.0, members[index][1])),
                "brief": members[index][1] < settings["kernel_section_share"],
                "causes": tuple(causes.get(index, ())),
                "not_evaluated": tuple(sorted(blind.get(index, ()))),
            }
        )
        for index, kernel in enumerate(kernels)
    )


def _causes(
    evaluation: Evaluation, at: Mapping[int, int], ranks: Mapping[str, int], settings: Mapping[str, float]
) -> dict[int, list[Cause]]:
    weights = {severity: settings[f"weight_{severity}"] for severity in SEVERITIES}
    found: dict[int, list[tuple[tuple[bool, float, int, str], Cause]]] = defaultdict(list)
    for outcome in evaluation.fired:
        for row in outcome.rows:
            profiles = row.get("profiles")
            if row.get("loop") is not None or not isinstance(profiles, list):
                continue
            cause = _cause(outcome.rule, sane(row), ranks.get(outcome.rule.code))
            share = cause.gain.share if cause.gain.kind != "test_needed" else 0.0
            order = (
                cause.gain.kind == "test_needed",
                -share * weights[cause.severity],
                -SEVERITIES.index(cause.severity),
                cause.code,
            )
            for kernel in sorted({at[profile] for profile in profiles if profile in at}):
                found[kernel].append((order, cause))
    return {kernel: [cause for _, cause in sorted(all_of, key=lambda one: one[0])] for kernel, all_of in found.items()}


def _cause(rule: Rule, row: Row, rank: int | None) -> Cause:
    worth = gain(PricedFinding(rule, [row], None, 1.0, {}, 1.0), 1.0)
    return Cause(
        code=rule.code, title=title(rule, [row], {}), severity=rule.severity, gain=worth,
        message=message(rule, [row], {}), finding=rank,
    )  # fmt: skip
