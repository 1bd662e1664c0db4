"""`gpudiag check`: which limits hold, which findings fail, what is known. All reports but one pair are synthetic."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

import samples
from comparing import BUDGET_PARTS
from evaluation.packed import recording
from gpudiag.cli import main
from gpudiag.diagnosis.rank import fingerprint
from gpudiag.errors import GpudiagError
from gpudiag.gate import check as gate
from gpudiag.gate import configfile, init
from gpudiag.gate.baseline import text as baseline_text
from gpudiag.gate.config import Budget, Config, Findings, Suppression, schema
from gpudiag.gate.result import Baseline, CheckResult
from gpudiag.library import load as library
from gpudiag.library.former_names import FormerNameWarning
from gpudiag.model import Gain, Leaf, Place, Report, Unevaluated, vocabulary
from gpudiag.report import check as checkpage
from gpudiag.report import json_format
from paths import CAPTURES, ROOT

ITEM_EVERY_STAGE = CAPTURES / "item_every_stage"
TODAY = date(2027, 1, 15)


@pytest.fixture(scope="module")
def settings() -> Mapping[str, float]:
    return library.load().setting_values


def config_of(toml: str) -> Config:
    return Config.model_validate(tomllib.loads(toml))


def checked(
    report: Report, toml: str, settings: Mapping[str, float], baseline: Baseline | None = None, today: date = TODAY
) -> CheckResult:
    return gate.check(
        report, config_of(toml), baseline, settings, BUDGET_PARTS, today, files=["a.sqlite"], config_name="g.toml"
    )


def with_loop(**changes: Any) -> Report:
    report = samples.launch_bound()
    loop = report.run.loops[0].model_copy(update={"launches": 412.0, **changes})
    return report.model_copy(update={"run": report.run.model_copy(update={"loops": (loop,)})})


def with_findings(*findings: Any, **more: Any) -> Report:
    return samples.launch_bound().model_copy(update={"findings": findings, "minor": (), **more})


def states(result: CheckResult) -> list[str]:
    return [one.state for one in result.findings]


# Budgets: decode_token takes 5.7 ms, computes 20.4 %, copies 0.3 %, idles 79.3 % and starts 412 kernels.


@pytest.mark.parametrize(
    ("limit", "state"),
    [
        ('iteration_time = "5.8 ms"', "kept"),
        ('iteration_time = "5700us"', "kept"),
        ('iteration_time = "5.6 ms"', "broken"),
        ("launches = 412", "kept"),
        ("launches = 411", "broken"),
        ('idle = "80 %"', "kept"),
        ("idle = 0.793", "kept"),
        ('idle = "79 %"', "broken"),
        ("exposed_copies = 0.01", "kept"),
        ("exposed_copies = 0.002", "broken"),
        ("exposed_communication = 0", "kept"),
        ("compute = 0.2", "kept"),
        ('compute = "21 %"', "broken"),
    ],
)
@pytest.mark.parametrize("name", ["decode_token", "longest", '"*"', '"decode_*"'])
def test_a_limit_is_kept_or_broken(limit: str, state: str, name: str, settings: Mapping[str, float]) -> None:
    result = checked(with_loop(), f"[budgets.{name}]\n{limit}", settings)
    assert [one.state for one in result.budgets] == [state]
    assert result.budgets[0].loop == "decode_token"
    assert result.passed == (state == "kept")


@pytest.mark.parametrize(
    ("report", "limit", "reason"),
    [
        (samples.kernel_only(), "idle = 0.5", "profiles of kernels only"),
        (samples.no_gpu_activity(), "idle = 0.5", "no loop was found"),
        (samples.healthy(), "idle = 0.5", "no loop is called so; there is `step`"),
        (with_loop(name="decode_tokens", nvtx_path=None), "idle = 1", "did you mean decode_tokens"),
        (with_loop(launches=0.0), "launches = 500", "does not count launches"),
        (with_loop(budget={}), "idle = 0.5", "does not tell where the time"),
        (with_loop(source="unknown"), 'iteration_time = "1 s"', "nothing repeats"),
    ],
)
@pytest.mark.parametrize(("missing", "passes"), [("fail", False), ("ignore", True)])
def test_a_limit_that_cannot_be_checked_never_looks_kept(
    report: Report, limit: str, reason: str, missing: str, passes: bool, settings: Mapping[str, float]
) -> None:
    result = checked(report, f'missing = "{missing}"\n[budgets.decode_token]\n{limit}', settings)
    assert [one.state for one in result.budgets] == ["unknown"]
    assert reason in result.budgets[0].reason
    assert result.passed == passes
    page = checkpage.markdown(result)
    assert "not checked" in page
    assert "kept:" not in page


def test_a_report_that_cannot_tell_does_not_pass_silently(settings: Mapping[str, float]) -> None:
    toml = '[findings]\nfail_on = "high"'
    strict = checked(samples.no_gpu_activity(), toml, settings)
    lenient = checked(samples.no_gpu_activity(), f'missing = "ignore"\n{toml}', settings)
    assert (strict.passed, lenient.passed) == (False, True)
    for result in (strict, lenient):
        assert "No GPU activity was recorded" in checkpage.markdown(result)


def test_the_unprofiled_time_counts_where_it_is_known(settings: Mapping[str, float]) -> None:
    toml = '[budgets.decode_token]\niteration_time = "4 ms"'
    recorded = checked(with_loop(), toml, settings)
    given = checked(with_loop(iteration_ms_unprofiled=3.57), toml, settings)
    assert [(r.budgets[0].state, r.budgets[0].basis) for r in (recorded, given)] == [
        ("broken", "recorded"),
        ("kept", "unprofiled"),
    ]
    assert "as recorded" in checkpage.markdown(recorded)
    assert "measured without the profiler" in checkpage.markdown(given)


def test_a_loop_has_its_own_budget_or_that_of_the_pattern(settings: Mapping[str, float]) -> None:
    report = with_loop()
    first = report.run.loops[0]
    loops = (
        first,
        first.model_copy(update={"id": 2, "name": "eval", "nvtx_path": "run/eval", "share_of_span": 0.05}),
        first.model_copy(update={"id": 3, "name": "load[0]", "nvtx_path": None, "share_of_span": 0.03}),
    )
    report = report.model_copy(update={"run": report.run.model_copy(update={"loops": loops})})
    toml = '[budgets."run/eval"]\nidle = 1\n[budgets."*"]\nidle = 0.5\n[budgets.longest]\nidle = 0.9\n'
    result = checked(report, toml, settings)
    assert {(one.budget, one.loop, one.state) for one in result.budgets} == {
        ("run/eval", "eval", "kept"),
        ("longest", "decode_token", "kept"),
        ("*", "load[0]", "broken"),
    }


def test_a_budget_may_use_the_former_name(settings: Mapping[str, float]) -> None:
    unmarked = {"name": "step", "nvtx_path": None, "source": "period", "marker": "every gemm"}
    for name in ("every gemm", "every *"):
        with pytest.warns(FormerNameWarning, match="'every .*' is now called 'step'"):
            result = checked(with_loop(**unmarked), f'[budgets."{name}"]\nidle = 1', settings)
        assert [(one.loop, one.state) for one in result.budgets] == [("step", "kept")]
    assert [one.state for one in checked(with_loop(**unmarked), "[budgets.step]\nidle = 1", settings).budgets] == [
        "kept"
    ]
    result = checked(with_loop(**unmarked), '[budgets."every relu"]\nidle = 1', settings)
    assert [one.state for one in result.budgets] == ["unknown"]


def test_a_line_says_how_much_and_why(settings: Mapping[str, float]) -> None:
    page = checkpage.markdown(checked(with_loop(), '[budgets.decode_token]\nidle = "15 %"\nlaunches = 400', settings))
    assert "leaves the GPU idle 79 % of an iteration, at most 15 % allowed: 64 points too much; 72 % idle" in page
    assert "starts 412 kernels and graphs an iteration, at most 400 allowed: 3.0 % too many" in page


def test_a_hair_too_much_is_printed_as_too_much(settings: Mapping[str, float]) -> None:
    page = checkpage.markdown(checked(with_loop(), '[budgets.decode_token]\nidle = "79.25 %"', settings))
    assert "79.3 % of an iteration, at most 79.25 % allowed" in page


# Findings: H01 is worth 72.5 % of the steady time (78.9 % of a loop of 91.9 %), S01 4.7 %; both high.


@pytest.mark.parametrize(
    ("gate_toml", "expected"),
    [
        ('fail_on = "high"', ["failed", "failed"]),
        ("max_gain = 0.05", ["failed", "passed"]),
        ('max_gain = "4 %"', ["failed", "failed"]),
        ('max_gain = "75 %"', ["passed", "passed"]),
        ('max_gain = "75 %"\nfail_on = "high"', ["failed", "failed"]),
        ('fail_on = "high"\nallow = ["H01"]', ["allowed", "failed"]),
        ('fail_on = "high"\nallow = ["H01", "S01"]', ["allowed", "allowed"]),
    ],
)
def test_findings_fail_by_severity_or_worth(gate_toml: str, expected: list[str], settings: Mapping[str, float]) -> None:
    result = checked(samples.launch_bound(), f"[findings]\n{gate_toml}", settings)
    assert states(result) == expected
    assert result.passed == ("failed" not in expected)


def test_findings_of_deprecated_rules_and_minor_ones_do_not_fail(settings: Mapping[str, float]) -> None:
    old = samples.launch_bound_finding(status="deprecated")
    report = with_findings(old, minor=(samples.launch_bound_finding(rank=2),))
    assert states(checked(report, '[findings]\nfail_on = "info"', settings)) == ["passed"]


def test_findings_that_need_a_test_are_not_judged_by_gain(settings: Mapping[str, float]) -> None:
    finding = samples.launch_bound_finding(gain=Gain(kind="test_needed", basis="kernel", test="Time it."))
    result = checked(with_findings(finding), "[findings]\nmax_gain = 0.01", settings)
    assert states(result) == ["passed"]
    assert "only an experiment can tell" in result.findings[0].reason


def suppress(until: str = "2027-03-31", **keys: str) -> str:
    lines = "".join(f'{key} = "{value}"\n' for key, value in ({"code": "H01", "reason": "a demo"} | keys).items())
    return f'[findings]\nfail_on = "high"\nallow = ["S01"]\n[[findings.suppress]]\n{lines}until = {until}\n'


@pytest.mark.parametrize(
    ("keys", "state"),
    [
        ({}, "suppressed"),
        ({"place": "decode.py"}, "suppressed"),
        ({"place": "dec*.py"}, "suppressed"),
        ({"place": "decode_token*"}, "suppressed"),  # the ranges of both places
        ({"place": "decode_token"}, "failed"),  # the range of one of its two places
        ({"place": "other.py"}, "failed"),
        ({"code": "H02"}, "failed"),
        ({"until": "2027-01-15"}, "suppressed"),  # its last day
        ({"until": "2027-01-14"}, "failed"),
    ],
)
def test_a_suppression_counts_at_its_place_until_its_day(
    keys: dict[str, str], state: str, settings: Mapping[str, float]
) -> None:
    result = checked(samples.launch_bound(), suppress(**keys), settings)
    assert result.findings[0].state == state
    if state == "suppressed":
        assert "a demo (until 2027-" in result.findings[0].reason


def test_a_file_is_found_under_any_folder(settings: Mapping[str, float]) -> None:
    place = Place(file="/home/ci/work/src/model/decode.py", line=3)
    report = with_findings(samples.launch_bound_finding(where=(place,)))
    for pattern, state in (("model/decode.py", "suppressed"), ("src/*.py", "suppressed"), ("code.py", "failed")):
        assert states(checked(report, suppress(place=pattern), settings)) == [state]


def test_expired_and_unused_suppressions_are_named(settings: Mapping[str, float]) -> None:
    expired = checked(samples.launch_bound(), suppress("2026-12-31"), settings)
    unused = checked(samples.healthy(), suppress(place="gone.py"), settings)
    assert [one.state for one in expired.suppressions] == ["expired"]
    assert "expired on 2026-12-31 and no longer counts" in checkpage.markdown(expired)
    assert [one.state for one in unused.suppressions] == ["unused"]
    assert unused.passed  # a note, no failure
    assert "matches nothing in this report" in checkpage.markdown(unused)


# The baseline.

GATE = '[findings]\nfail_on = "high"'


def known_of(
    report: Report, settings: Mapping[str, float], before: Baseline | None = None, toml: str = GATE
) -> Baseline:
    return gate.updated_baseline(report, config_of(toml), before, settings, BUDGET_PARTS, TODAY)


def test_known_findings_pass_and_are_listed(settings: Mapping[str, float]) -> None:
    report = samples.launch_bound()
    result = checked(report, GATE, settings, known_of(report, settings))
    assert states(result) == ["known", "known"]
    assert result.passed
    assert "known since 2027-01-15" in checkpage.markdown(result)


# As version e766040 wrote it of a solver: loops found by repetition were called by their kernels.
FORMER_BASELINE = {
    "schema_version": 1,
    "findings": [
        {
            "code": "S02",
            "title": "The host waits for the GPU in every iteration",
            "loop": "every reduce_1Block_kernel",
            "fingerprint": "7c4529882b429e15",
            "places": [],
            "worth": 0.15,
            "since": "2026-11-23",
        }
    ],
}


def solver(fingerprint: str) -> Report:
    """A report on that solver with a finding of no place."""
    changes = {"code": "S02", "where": (), "fingerprint": fingerprint}
    found = samples.launch_bound_finding().model_copy(update=changes)
    gain = found.gain.model_copy(update={"share": 0.15})
    report = with_loop(name="step", nvtx_path=None, source="period", marker="every reduce_1Block_kernel")
    return report.model_copy(update={"findings": (found.model_copy(update={"gain": gain}),), "minor": ()})


def test_a_baseline_with_former_names_of_loops_counts(settings: Mapping[str, float]) -> None:
    baseline = Baseline.model_validate(FORMER_BASELINE)
    for known in (baseline.findings[0].fingerprint, "0"):  # by fingerprint, and by the loop alone
        report = solver(known)
        with pytest.warns(FormerNameWarning, match="'every reduce_1Block_kernel' is now called 'step'"):
            result = checked(report, GATE, settings, baseline)
        assert states(result) == ["known"]
        with pytest.warns(FormerNameWarning):
            renewed = known_of(report, settings, baseline)
        assert [(entry.loop, entry.since) for entry in renewed.findings] == [("step", baseline.findings[0].since)]
    assert states(checked(solver("0"), GATE, settings, renewed)) == ["known"]
    elsewhere = Baseline(findings=(baseline.findings[0].model_copy(update={"loop": "every other"}),))
    assert states(checked(solver("0"), GATE, settings, elsewhere)) == ["failed"]


def test_fingerprints_are_those_of_the_former_names(settings: Mapping[str, float]) -> None:
    loop = solver("0").run.loops[0]
    assert fingerprint(library.load().by_code["S02"], loop, ()) == FORMER_BASELINE["findings"][0]["fingerprint"]


def test_a_new_finding_fails_beside_known_ones(settings: Mapping[str, float]) -> None:
    baseline = known_of(with_findings(samples.launch_bound_finding()), settings)
    for toml in (GATE, ""):  # a baseline alone lets nothing new pass
        result = checked(samples.launch_bound(), toml, settings, baseline)
        assert states(result) == ["known", "failed"]


@pytest.mark.parametrize(
    ("where", "state"),
    [
        ([Place(file="decode.py", line=99, function="step")], "known"),  # moved within its function
        ([Place(file="/elsewhere/decode.py", line=31, function="step")], "known"),  # another checkout
        ([Place(file="decode.py", line=31, function="prefill")], "failed"),
        ([Place(file="prefill.py", line=31, function="step")], "failed"),
        ([Place(nvtx="decode_token")], "known"),  # recorded without Python samples
        ([Place(nvtx="prefill")], "failed"),
        ([], "failed"),
    ],
)
def test_a_finding_is_recognised_where_it_moved(where: list[Place], state: str, settings: Mapping[str, float]) -> None:
    baseline = known_of(with_findings(samples.launch_bound_finding()), settings)
    moved = samples.launch_bound_finding(where=tuple(where), fingerprint="another")
    assert states(checked(with_findings(moved), GATE, settings, baseline)) == [state]


def test_one_known_finding_excuses_one_finding(settings: Mapping[str, float]) -> None:
    first = samples.launch_bound_finding()
    second = samples.launch_bound_finding(rank=2, fingerprint="another")
    baseline = known_of(with_findings(first), settings)
    assert states(checked(with_findings(second, first), GATE, settings, baseline)) == ["failed", "known"]


@pytest.mark.parametrize(("share", "state"), [(0.30, "known"), (0.34, "known"), (0.36, "known"), (0.45, "failed")])
def test_a_known_finding_fails_once_it_grew_clearly(share: float, state: str, settings: Mapping[str, float]) -> None:
    def worth(share: float) -> Report:
        gain = Gain(kind="expected", basis="loop", loop=1, before_ms=5.7, after_ms=5.7 * (1 - share), share=share)
        return with_findings(samples.launch_bound_finding(gain=gain))

    baseline = known_of(worth(0.30), settings)
    result = checked(worth(share), GATE, settings, baseline)
    assert states(result) == [state]
    assert ("it grew from" in result.findings[0].reason) == (state == "failed")
    renewed = known_of(worth(share), settings, baseline)
    assert (renewed == baseline) == (state == "known")  # no churn, and no creeping up
    assert states(checked(worth(share), GATE, settings, renewed)) == ["known"]


def test_findings_gone_are_named_and_leave_with_the_next_update(settings: Mapping[str, float]) -> None:
    baseline = known_of(samples.launch_bound(), settings)
    unpaid = with_findings(samples.launch_bound_finding())
    assert "may be hidden: the GPU still idles after a wait" in checkpage.markdown(
        checked(unpaid, GATE, settings, baseline)
    )
    assert known_of(unpaid, settings, baseline) == baseline
    fixed = unpaid.model_copy(update={"run": with_loop(budget={"compute": 0.28, "idle_launch": 0.72}).run})
    result = checked(fixed, GATE, settings, baseline)
    assert result.passed
    assert [one.code for one in result.gone] == ["S01"]
    assert "Gone: S01" in checkpage.markdown(result)
    assert "--prune-baseline" in checkpage.markdown(result)
    assert [one.code for one in known_of(fixed, settings, baseline).findings] == ["H01"]


def test_what_could_not_be_looked_for_is_not_gone(settings: Mapping[str, float]) -> None:
    baseline = known_of(samples.launch_bound(), settings)
    lost = Unevaluated(code="S01", reason="no Python samples")
    blind = with_findings(samples.launch_bound_finding(), not_evaluated=(lost,))
    result = checked(blind, GATE, settings, baseline)
    assert (result.gone, [one.code for one in result.unseen]) == ((), ["S01"])
    assert known_of(blind, settings, baseline) == baseline


def test_a_finding_that_shrank_below_the_report_is_not_gone(settings: Mapping[str, float]) -> None:
    baseline = known_of(with_findings(samples.launch_bound_finding()), settings)
    small = with_findings(minor=(samples.launch_bound_finding(),))
    assert checked(small, GATE, settings, baseline).gone == ()
    assert known_of(small, settings, baseline) == baseline


def test_a_baseline_holds_no_lines_paths_or_times_and_is_sorted(settings: Mapping[str, float]) -> None:
    finding = samples.launch_bound_finding(where=(Place(file="/home/me/secret/decode.py", line=31, function="step"),))
    report = with_findings(samples.readback_finding(), finding)
    text = baseline_text(known_of(report, settings))
    assert [one["code"] for one in json.loads(text)["findings"]] == ["H01", "S01"]
    assert "secret" not in text
    assert '"line"' not in text
    assert text == baseline_text(known_of(with_findings(finding, samples.readback_finding()), settings))


def test_allowed_and_suppressed_findings_skip_the_baseline(settings: Mapping[str, float]) -> None:
    assert known_of(samples.launch_bound(), settings, toml=suppress()).findings == ()


# The configuration.


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[budgets.step]\nidel = 0.1", ["budgets.step.idel", "did you mean idle"]),
        ("[budgets.step]\nsubmiting = 0.1", ["budgets.step.submiting", "did you mean submitting"]),
        ('[budgets.step]\nsyncs = "5 %"', ["budgets.step.syncs", "did you mean sync"]),
        ("[budget.step]\nidle = 0.1", ["budget", "did you mean budgets"]),
        ('[findings]\nfailon = "high"', ["findings.failon", "fail_on"]),
        ('[findings]\nfail_on = "severe"', ["findings.fail_on", '"high"']),
        ("[findings]\nmax_gain = 5", ["findings.max_gain", '"5 %"']),
        ("[findings]\nmax_gain = true", ["findings.max_gain", "True"]),
        ('[findings]\nallow = "H01"', ["findings.allow", "list"]),
        ('[findings]\nallow = ["launch-bound"]', ["findings.allow[1]", "gpudiag rules list"]),
        ("[budgets.step]\niteration_time = 4.2", ["budgets.step.iteration_time", "unit", "4.2 ms"]),
        ('[budgets.step]\niteration_time = "4.2"', ["budgets.step.iteration_time", "4.2 ms"]),
        ('[budgets.step]\niteration_time = "0 ms"', ["more than nothing"]),
        ('[budgets.step]\nlaunches = "many"', ["budgets.step.launches", "count"]),
        ("[budgets.step]\nlaunches = nan", ["budgets.step.launches"]),
        ('[budgets.step]\nidle = "120 %"', ["budgets.step.idle", "100 %"]),
        ("[budgets.step]", ["budgets.step", "sets no limit"]),
        ("[budgets]\nidle = 0.1", ["budgets.idle", "table"]),
        ('[budgets."my step"]\nidel = 1', ['budgets."my step".idel']),
        ('missing = "maybe"', ["missing", '"ignore"']),
        ('[[findings.suppress]]\ncode = "S01"\nuntil = 2027-03-31', ["findings.suppress[1] lacks reason"]),
        ('[[findings.suppress]]\ncode = "S01"\nreason = " "\nuntil = 2027-03-31', ["reason is empty"]),
        ('[[findings.suppress]]\ncode = "S01"\nreason = "x"', ["findings.suppress[1] lacks until", "2027-03-31"]),
        ('[[findings.suppress]]\ncode = "S01"\nreason = "x"\nuntil = "soon"', ["until", "soon", "no day"]),
        ('[[findings.suppress]]\ncode = "S01"\nreson = "x"\nuntil = 2027-03-31', ["reson", "did you mean reason"]),
        ('[findings.suppress]\ncode = "S01"', ["findings.suppress", "[[findings.suppress]]"]),
        ("idle = ", ["not TOML"]),
        ("a = " + "[" * 5000, ["not TOML"]),
        (2 * f"[{'.'.join('a' * 2000)}]\n", ["not TOML: Cannot declare"]),
        ("", ["sets no limit"]),
    ],
)
def test_a_wrong_configuration_is_refused_in_one_sentence(
    toml: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpudiag.toml").write_text(toml)
    saved(samples.healthy())
    result = check("report.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("gpudiag: gpudiag.toml")
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 600
    for word in words:
        assert word in result.stderr


def test_the_nearest_configuration_counts_up_to_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "bench" / "deep"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "repository"):
        (folder / "gpudiag.toml").write_text("")
    assert configfile.find(inner) is None  # no repository: nobody's folder above
    (tmp_path / "repository" / ".git").mkdir()
    assert configfile.find(inner) == tmp_path / "repository" / "gpudiag.toml"
    (tmp_path / "repository" / "bench" / "pyproject.toml").write_text("[tool.other]\nx = 1")
    assert configfile.find(inner) == tmp_path / "repository" / "gpudiag.toml"
    (tmp_path / "repository" / "bench" / "pyproject.toml").write_text("[tool.gpudiag.budgets.step]\nidle = 0.2")
    found = configfile.find(inner)
    assert found == tmp_path / "repository" / "bench" / "pyproject.toml"
    assert configfile.read(found).budgets["step"].idle == 0.2
    (tmp_path / "repository" / ".git").rmdir()
    (tmp_path / ".git").mkdir()
    assert configfile.find(tmp_path / "repository") == tmp_path / "repository" / "gpudiag.toml"


def test_a_missing_or_wrong_pyproject_table_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    for content, word in (("[tool.x]", "no table"), ("[tool]\ngpudiag = 3", "table"), ("[tool.gpudiag]\nx = 1", "x")):
        path.write_text(content)
        with pytest.raises(GpudiagError, match=word):
            configfile.read(path)


def test_the_schema_agrees_with_what_is_read() -> None:
    good = f'missing = "ignore"\n[budgets."*"]\niteration_time = "4 ms"\nidle = "5 %"\ncompute = 0.5\n{suppress()}'
    validator = jsonschema.Draft202012Validator(schema())
    parsed = json.loads(json.dumps(tomllib.loads(good), default=str))
    assert list(validator.iter_errors(parsed)) == []
    assert config_of(good).budgets["*"].iteration_time == 4.0
    for bad in ({"budget": {}}, {"budgets": {"a": {"idle": 5}}}, {"budgets": {"a": {"iteration_time": 4.2}}}):
        assert list(validator.iter_errors(bad))


def test_the_page_about_ci_shows_what_is_read() -> None:
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) > 3
    for block in blocks:
        config_of(block)
    keys = [*Budget.model_fields, *Findings.model_fields, *Suppression.model_fields, *Config.model_fields]
    assert [key for key in keys if key not in page] == []


# The command.


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def saved(report: Report, name: str = "report.json") -> None:
    Path(name).write_text(json_format.render(report))


def test_exit_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(samples.launch_bound())
    assert check("report.json").exit_code == 2  # no configuration
    assert "--init" in check("report.json").stderr
    Path("gpudiag.toml").write_text("[budgets.decode_token]\nidle = 0.9")
    assert check("report.json").exit_code == 0
    assert check("missing.sqlite").exit_code == 2
    Path("gpudiag.toml").write_text("[budgets.decode_token]\nidle = 0.5")
    assert check("report.json").exit_code == 1
    Path("other.toml").write_text("[budgets.decode_token]\nidle = 0.9")
    assert check("report.json", "--config", "other.toml").exit_code == 0


def test_from_nothing_to_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(with_loop())
    assert check("report.json", "--init").exit_code == 0
    assert check("report.json", "--init").exit_code == 2  # never overwritten
    assert check("report.json").exit_code == 1  # findings of today
    baseline = ("--baseline", "known.json")
    assert "--update-baseline" in check("report.json", *baseline).stderr  # it is not there yet
    assert check("report.json", *baseline, "--update-baseline").exit_code == 0
    before = Path("known.json").read_bytes()
    assert check("report.json", *baseline, "--update-baseline").exit_code == 0
    assert Path("known.json").read_bytes() == before
    assert check("report.json", *baseline).exit_code == 0
    saved(with_loop(launches=900.0))
    assert check("report.json", *baseline).exit_code == 1


def test_the_baseline_may_stand_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "gpudiag.toml").write_text('[findings]\nbaseline = "known.json"')
    monkeypatch.chdir(tmp_path / "deep")
    saved(samples.launch_bound())
    assert check("report.json", "--update-baseline").exit_code == 0
    assert (tmp_path / "known.json").is_file()
    assert check("report.json").exit_code == 0


def test_a_baseline_is_not_replaced_by_a_report_that_cannot_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(samples.launch_bound())
    assert check("report.json", "--baseline", "known.json", "--update-baseline").exit_code == 0
    before = Path("known.json").read_bytes()
    saved(samples.no_gpu_activity())
    assert check("report.json", "--baseline", "known.json", "--update-baseline").exit_code == 2
    assert Path("known.json").read_bytes() == before


@pytest.mark.parametrize(
    "content", ["", "[]", "{}{", '{"schema_version": 9}', '{"findings": [{"code": 1}]}', "[" * 10**5]
)
def test_a_damaged_baseline_is_reported(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(samples.launch_bound())
    Path("known.json").write_text(content)
    result = check("report.json", "--baseline", "known.json")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "known.json" in result.stderr


def test_json_is_for_bots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(samples.launch_bound())
    Path("gpudiag.toml").write_text('[budgets.decode_token]\nidle = "15 %"\n[findings]\nfail_on = "high"')
    result = check("report.json", "--format", "json")
    content = json.loads(result.stdout)
    assert (result.exit_code, content["passed"]) == (1, False)
    assert content["budgets"][0] | {"parts": {}} == {
        "state": "broken", "budget": "decode_token", "limit": "idle", "loop": "decode_token", "unit": "share",
        "at_least": False, "allowed": 0.15, "measured": 0.793, "basis": None, "parts": {}, "reason": "",
    }  # fmt: skip
    assert [one["state"] for one in content["findings"]] == ["failed", "failed"]
    assert CheckResult.model_validate(content).files == ("report.json",)


def test_names_of_the_program_are_harmless_on_the_page(settings: Mapping[str, float]) -> None:
    report = samples.hostile()
    codes = tuple(finding.model_copy(update={"code": samples.EVIL}) for finding in report.findings)
    page = checkpage.markdown(
        checked(
            report.model_copy(update={"findings": codes}), '[budgets."*"]\nidle = 0\n[findings]\nmax_gain = 0', settings
        )
    )
    assert "evil" in page
    assert not any(bad in page for bad in ("\x1b", "\u202e", "<!--"))
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# gpudiag check: failed", "## Budgets", "## Findings that fail", "## Notes",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "source", "table"),
    [
        ("step", "nvtx", "step"),
        ('a "b" µ', "nvtx", 'a "b" µ'),
        ("x\ny", "nvtx", "longest"),
        ("loop", "period", "longest"),
    ],
)
def test_what_init_writes_is_read_and_kept(name: str, source: str, table: str, settings: Mapping[str, float]) -> None:
    report = with_loop(name=name, source=source, nvtx_path=None)
    toml = init.text(report, settings, "gpudiag check a\nb", "known.json")
    assert list(config_of(toml).budgets) == [table]
    assert [one.state for one in checked(report, toml, settings).budgets] == ["kept"] * 3


@pytest.mark.parametrize("report", [samples.kernel_only(), samples.no_gpu_activity(), samples.hostile()])
def test_init_writes_a_file_that_is_read_for_any_report(report: Report, settings: Mapping[str, float]) -> None:
    assert config_of(init.text(report, settings, "gpudiag check a\nb", "known.json")).findings.fail_on == "high"


@pytest.mark.capture
def test_a_real_program_keeps_its_budget_once_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are read back after every stage: 9.9 ms an iteration, 7.0 ms fixed (17 and 11 under the profiler)."""
    monkeypatch.chdir(tmp_path)
    Path("gpudiag.toml").write_text(
        '[budgets.iter]\niteration_time = "12 ms"\nidle = "45 %"\nlaunches = 560\n'
        '[findings]\nfail_on = "high"\nallow = ["H01"]\n'
    )
    slow = check(str(ITEM_EVERY_STAGE / "slow.sqlite.xz"))
    fixed = check(str(recording(ITEM_EVERY_STAGE / "fixed")))
    assert (slow.exit_code, fixed.exit_code) == (1, 0)
    assert "**broken:** `iter` takes 17.3 ms" in slow.stdout
    assert "**broken:** `iter` leaves the GPU idle 64 %" in slow.stdout
    assert "**S01" in slow.stdout
    assert "broken" not in fixed.stdout
    assert "3 of 3 limits kept" in fixed.stdout


# Leaves of the time tree.


@pytest.mark.parametrize("leaf", vocabulary.LEAVES)
def test_each_leaf_is_limited_by_its_name(leaf: str, settings: Mapping[str, float]) -> None:
    report = with_loop(budget={vocabulary.LEAVES[leaf].part: 0.25}, tree={leaf: Leaf(share=0.25)})
    results = [checked(report, f"[budgets.longest]\n{leaf} = {limit}", settings) for limit in (0.2, 0.25, 0.3)]
    kept = [False, True, True]
    if leaf == "computing":
        kept = [True, True, False]
    assert [result.passed for result in results] == kept
    assert [result.budgets[0].measured for result in results] == [0.25] * 3


def test_a_leaf_without_time_keeps_any_limit(settings: Mapping[str, float]) -> None:
    report = with_loop(tree={"computing": Leaf(share=1.0)})
    assert checked(report, "[budgets.longest]\nsync = 0", settings).passed


def test_a_leaf_of_a_report_without_the_tree_is_not_checked(settings: Mapping[str, float]) -> None:
    result = checked(with_loop(tree={}), "[budgets.longest]\nsync = 1\nidle = 1", settings)
    assert [(one.limit, one.state) for one in result.budgets] == [("idle", "kept"), ("sync", "unknown")]
    assert not result.passed
    assert "make it anew from the capture" in checkpage.markdown(result)


@pytest.mark.capture
def test_a_limit_on_waits_fails_for_a_wait_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are read back after every stage, then no more: both wait for launches."""
    monkeypatch.chdir(tmp_path)
    Path("gpudiag.toml").write_text('[budgets.iter]\nsync = "5 %"\nsubmitting = "60 %"\n')
    slow = check(str(ITEM_EVERY_STAGE / "slow.sqlite.xz"))
    fixed = check(str(recording(ITEM_EVERY_STAGE / "fixed")))
    assert (slow.exit_code, fixed.exit_code) == (1, 0)
    waits = "of an iteration idle after the host waited for the GPU"
    assert f"**broken:** `iter` spends 17 % {waits}, at most 5.0 % allowed: 12 points too much" in slow.stdout
    assert f"kept: `iter` spends 0 % {waits}" in fixed.stdout
    assert "kept: `iter` spends 43 % of an iteration idle (the host is launching work)" in slow.stdout


@pytest.mark.parametrize("category", vocabulary.BUDGET)
def test_every_part_of_an_iteration_counts_in_one_limit(category: str, settings: Mapping[str, float]) -> None:
    toml = "[budgets.longest]\nidle = 1\nexposed_copies = 1\nexposed_communication = 1\ncompute = 0"
    result = checked(with_loop(budget={category: 0.25}), toml, settings)
    assert sorted(one.measured or 0 for one in result.budgets) == [0, 0, 0, 0.25]


# What a check says of what is not there.


def test_a_failed_check_never_advises_to_remove_unseen_entries(settings: Mapping[str, float]) -> None:
    baseline = known_of(with_findings(samples.launch_bound_finding()), settings)
    regressed = with_findings(samples.readback_finding())  # the GPU still waits for launches
    result = checked(regressed, GATE, settings, baseline)
    page = checkpage.markdown(result)
    assert not result.passed
    assert "Not seen in this capture: H01" in page
    assert "It may be hidden: the GPU still waits for launches for 72 % of an iteration of `decode_token`" in page
    assert not re.search("Gone|Remove|-baseline`", page)
    assert [one.code for one in known_of(regressed, settings, baseline).findings] == ["H01", "S01"]


def test_what_fails_may_hide_a_finding_whose_idle_time_is_gone(settings: Mapping[str, float]) -> None:
    baseline = known_of(with_findings(samples.launch_bound_finding()), settings)
    loop = with_loop(budget={"compute": 0.9, "idle_sync": 0.1}).run.loops[0]
    report = with_findings(samples.readback_finding())
    report = report.model_copy(update={"run": report.run.model_copy(update={"loops": (loop,)})})
    assert "What fails may hide it" in checkpage.markdown(checked(report, GATE, settings, baseline))
    passed = checked(report, f'{GATE}\nallow = ["S01"]', settings, baseline)
    assert "Gone: H01" in checkpage.markdown(passed)
    assert "`--prune-baseline`" in checkpage.markdown(passed)


def test_pruning_removes_what_is_gone_and_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(samples.launch_bound())
    arguments = ("report.json", "--baseline", "known.json")
    check(*arguments, "--update-baseline")
    before = Path("known.json").read_bytes()
    saved(with_findings(samples.readback_finding().model_copy(update={"code": "S02", "fingerprint": "new"})))
    failed = check(*arguments, "--prune-baseline")
    assert (failed.exit_code, Path("known.json").read_bytes()) == (1, before)
    assert "known.json was left as it is" in failed.stderr
    saved(with_findings(samples.launch_bound_finding()))
    passed = check(*arguments, "--prune-baseline")
    assert (passed.exit_code, passed.stderr.count("\n")) == (0, 1)
    assert passed.stderr.startswith("known.json: − S01 ")
    assert [one["code"] for one in json.loads(Path("known.json").read_text())["findings"]] == ["H01"]


def test_each_change_of_the_baseline_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(with_findings(samples.launch_bound_finding()))
    arguments = ("report.json", "--baseline", "known.json", "--update-baseline")
    assert re.fullmatch(r"known.json: \+ H01 .*worth 73 %\n", check(*arguments).stderr)
    assert check(*arguments).stderr == "known.json: no change\n"
    saved(samples.launch_bound())
    assert re.fullmatch(r"known.json: \+ S01 .*\n", check(*arguments).stderr)


def test_a_failure_says_that_its_suppression_expired(settings: Mapping[str, float]) -> None:
    page = checkpage.markdown(checked(samples.launch_bound(), suppress("2026-12-31"), settings))
    assert "Fails: its suppression expired on 2026-12-31; severity high" in page


@pytest.mark.parametrize(("until", "noted"), [("2027-01-15", True), ("2027-01-29", True), ("2027-01-30", False)])
def test_a_suppression_that_soon_ends_is_noted(until: str, noted: bool, settings: Mapping[str, float]) -> None:
    result = checked(samples.launch_bound(), suppress(until), settings)
    assert (result.passed, f"ends on {until}" in checkpage.markdown(result)) == (True, noted)


def test_a_reason_reads_as_it_was_written_and_mentions_nobody(settings: Mapping[str, float]) -> None:
    toml = suppress(reason="asked by @ann, see #412, https://host/x_y and o/r#3; `a #1` stays <b>")
    page = checkpage.markdown(checked(samples.launch_bound(), toml, settings))
    assert "asked by `@ann`, see `#412`, `https://host/x_y` and `o/r#3`; `a #1` stays &lt;b>" in page
    assert "8203" not in page


def test_a_code_that_no_rule_has_is_noted(settings: Mapping[str, float]) -> None:
    config = config_of(suppress(code="H011").replace('["S01"]', '["S01", "Z99"]'))
    codes = library.load().by_code
    result = gate.check(samples.launch_bound(), config, None, settings, BUDGET_PARTS, TODAY, codes=codes)
    assert [(one.key, one.code) for one in result.unknown_rules] == [
        ("findings.allow", "Z99"),
        ("findings.suppress", "H011"),
    ]
    assert re.search(
        r"`findings.suppress` names H011, but there is no such rule: did you mean .*H0\d", checkpage.markdown(result)
    )


def test_paths_are_shortened_and_words_are_explained_once(settings: Mapping[str, float]) -> None:
    root = "/home/ci/work/deep/src"
    places = tuple(Place(file=f"{root}/{name}.py", line=3) for name in ("a", "b", "model/c"))
    page = checkpage.markdown(checked(with_findings(samples.launch_bound_finding(where=places)), GATE, settings))
    assert page.count(root) == 1
    assert "at `a.py:3`; `b.py:3`; `model/c.py:3`. Fails" in page
    assert page.count("Steady time is") == 1


def test_a_failed_check_that_writes_a_file_says_so_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(samples.launch_bound())
    Path("gpudiag.toml").write_text("[budgets.decode_token]\nidle = 0.5")
    result = check("report.json", "-o", "check.md")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "gpudiag: check failed: 0 of 1 limit kept, 1 broken, no finding fails; see check.md\n"
    Path("gpudiag.toml").write_text("[budgets.decode_token]\nidle = 0.9")
    assert check("report.json", "-o", "check.md").output == ""


@pytest.mark.parametrize("config", [(), ("--config", "my limits/gate.toml")])
def test_the_commands_that_init_names_work(
    config: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my limits").mkdir()
    saved(with_loop(), "my report.json")
    result = check("my report.json", "--init", *config)
    (command,) = re.findall(r"2 findings of today would fail; accept them with: gpudiag check (.*)", result.stderr)
    toml = Path(config[1] if config else "gpudiag.toml")
    assert f"#   gpudiag check {command}\n" in toml.read_text()
    assert check("my report.json", *config).exit_code == 1
    assert check(*shlex.split(command)).exit_code == 0
    toml.write_text(toml.read_text().replace("# baseline", "baseline"))
    assert check("my report.json", *config).exit_code == 0


def test_the_ci_page_installs_only_claimed_names() -> None:
    docs = ROOT / "docs"
    for page in (docs / "ci.md", docs / "guide.md", docs / "github.md"):
        assert not re.search(r"pip install '?gpudiag(\[|'|\s*$)", page.read_text("utf-8"), re.MULTILINE)
    (workflow,) = re.findall(r"```yaml\n(# .github.*?)```", (docs / "ci.md").read_text("utf-8"), re.DOTALL)
    steps = yaml.safe_load(workflow)["jobs"]["check"]["steps"]
    assert [step.get("shell") for step in steps if "|" in step.get("run", "")] == ["bash"]


def test_a_capture_is_recorded_the_same_way_on_every_page() -> None:
    docs = ROOT / "docs"
    text = "".join(
        (docs / name).read_text("utf-8") for name in ("ci.md", "guide.md", "github.md", "examples/gpudiag.yml")
    )
    lines = re.findall(r"nsys profile (--trace.*?) -o report", text, re.DOTALL)
    assert len(lines) == 5
    trace = "--trace=cuda,nvtx,osrt,cublas,cudnn"
    assert {" ".join(line.replace("\\\n", " ").split()) for line in lines} == {
        f"{trace} --sample=none --cpuctxsw=none --python-sampling=true --python-sampling-frequency=1000"
    }


# Files, figures and times that cannot be what they are given as.


def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toml: str = '[findings]\nfail_on = "high"\n') -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpudiag.toml").write_text(toml)
    Path("report.json").write_text(json_format.render(samples.launch_bound()))


@pytest.mark.parametrize("place", ["gpudiag.toml", "./gpudiag.toml", "known.json", "new.json"])
def test_the_answer_never_replaces_what_it_rests_on(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_folder(tmp_path, monkeypatch)
    Path("known.json").write_text(baseline_text(Baseline()))
    before = {file.name: file.read_text() for file in tmp_path.iterdir()}
    baseline = "new.json" if place == "new.json" else "known.json"
    options = ["--baseline", baseline, "--update-baseline", "-o", place]
    result = CliRunner().invoke(main, ["check", "report.json", *options])
    assert result.exit_code == 2
    refusals = ("give another place with -o", "nothing of this command ends in .toml")
    assert any(refusal in result.stderr for refusal in refusals)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("content", ["{}", '{"name": "a package"}', "[]", "report"])
def test_other_json_is_no_empty_baseline(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(tmp_path, monkeypatch)
    healthy = samples.healthy().model_copy(update={"findings": (), "minor": ()})
    text = json_format.render(healthy) if content == "report" else content
    Path("package.json").write_text(text)
    result = CliRunner().invoke(main, ["check", "report.json", "--baseline", "package.json", "--update-baseline"])
    assert result.exit_code == 2
    assert "no baseline of gpudiag" in result.stderr
    assert Path("package.json").read_text() == text


@pytest.mark.parametrize("worth", ["NaN", "Infinity", "1e308", "-0.1", "1" + "0" * 400, "1" * 5000])
def test_a_worth_that_is_no_share_damages_a_baseline(
    worth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_folder(tmp_path, monkeypatch)
    entry = f'{{"code": "S01", "fingerprint": "aa", "since": "2027-01-01", "worth": {worth}}}'
    Path("known.json").write_text(f'{{"schema_version": 1, "findings": [{entry}]}}')
    result = CliRunner().invoke(main, ["check", "report.json", "--baseline", "known.json"])
    assert result.exit_code == 2
    assert "known.json is" in result.stderr
    assert len(result.stderr) < 400


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    "toml",
    [
        "[budgets.longest]\nlaunches = {}",
        "[budgets.longest]\nidle = {}",
        "[budgets.longest]\niteration_time = {}",
        '[budgets.longest]\niteration_time = "{} ms"',
        '[budgets.longest]\nidle = "{} %"',
        "missing = {}",
        "[findings]\nallow = [{}]",
        "[findings]\nallow = {{ a = {} }}",
        "[budgets.longest]\nlaunches = 0x{}",
    ],
)
def test_huge_numbers_are_refused_in_a_sentence(toml: str, digits: int, tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text(toml.format("9" * digits))
    with pytest.raises(GpudiagError) as error:
        configfile.read(path)
    assert len(str(error.value)) < len(str(path)) + 200


@pytest.mark.parametrize("value", ["5 %\\n", "\u0665 %", "\u0665%"])
def test_a_share_is_written_in_plain_digits_and_nothing_else(value: str, tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text(f'[budgets.longest]\nidle = "{value}"', encoding="utf-8")
    with pytest.raises(GpudiagError, match="no share"):
        configfile.read(path)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text('[findings]\nfail_on = "high"\n', encoding="utf-8-sig")
    assert configfile.read(path).findings.fail_on == "high"


@pytest.mark.parametrize("option", ["--config", "--baseline"])
@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_what_is_no_regular_file_is_not_read(
    option: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_folder(tmp_path, monkeypatch)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    path = "/dev/zero" if kind == "device" else kind
    result = CliRunner().invoke(main, ["check", "report.json", option, path])
    assert result.exit_code == 2
    assert ("is a folder" if kind == "folder" else "is a pipe or a device") in result.stderr


@pytest.mark.parametrize(
    ("time", "reason"),
    [(0.001, "less than the 1.18 ms in which the GPU works"), (5700.0, "1,000 times the recorded 5.70 ms")],
)
def test_a_time_that_the_recording_contradicts_keeps_no_limit(
    time: float, reason: str, settings: Mapping[str, float]
) -> None:
    report = with_loop(iteration_ms_unprofiled=time)
    result = checked(report, '[budgets.decode_token]\niteration_time = "9 s"', settings)
    assert ([one.state for one in result.budgets], result.passed) == (["unknown"], False)
    assert reason in result.budgets[0].reason
    assert reason in checkpage.markdown(result)
    written = init.text(report, settings, "accept", "baseline.json")
    assert "iteration_time" not in tomllib.loads(written)["budgets"]["decode_token"]
    assert reason in written
