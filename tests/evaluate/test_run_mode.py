"""Rules that need iterations, where nothing repeats. All rows are synthetic."""

from __future__ import annotations

import pytest

from gpudiag.evaluate.engine import missing_evidence
from gpudiag.evaluate.evidence import Known
from timelines import iterations, library, opened


@pytest.mark.parametrize(("source", "judged"), [("unknown", False), ("period", True), ("nvtx", True)])
def test_a_rule_about_iterations_needs_some(source: str, judged: bool) -> None:
    case = {"loop": [{"id": 0, "period_source": source}], "iteration": [iterations(8)]}
    with opened(case) as con:
        known = Known.of(library(), con)
        missing = missing_evidence(library().by_code["S05"], known)
    assert (missing is None) == judged
    assert missing is None or "nothing was found that repeats" in missing.reason
