"""`gpudiag rules try`: a rule's rows on a capture, what stopped it, and the sentence of the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from captures import named, report_of
from gpudiag.authoring import scaffold
from gpudiag.authoring.trial import Trial
from gpudiag.authoring.trial_page import page
from gpudiag.cli import main
from gpudiag.evaluate.engine import PLACEHOLDER
from gpudiag.library import load as library
from paths import ROOT

PAGE = named("matmul_tail_wave/slow.raw.csv")
OCCUPANCY = named("occupancy_shared_memory/slow.raw.csv")
TIMELINE = ROOT / "fixtures/captures/item_every_stage/slow.sqlite.xz"


def tried(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["rules", "try", *map(str, args)])


def fired(*args: str | Path) -> str:
    result = tried(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file of a new rule U01 whose placeholders have been written."""
    for path in scaffold.scaffold(tmp_path / "mine", "sync", "my-smell", "U01"):
        path.write_text(path.read_text("utf-8").replace(PLACEHOLDER, "Written"), "utf-8")
    return tmp_path / "mine" / "sync" / "my-smell.yaml"


@pytest.mark.capture
def test_a_rule_that_fires_shows_rows_and_sentence() -> None:
    text = fired("tail-effect", PAGE)
    assert "\n  last_round        1\n" in text
    assert "\nrequires kernel_profiles                   recorded\n" in text
    assert "\nvetoed by X05 (at-roofline-limit)          does not apply\n" in text
    assert "\nfires with 1 row\n" in text
    finding = next(finding for finding in report_of(PAGE).findings if finding.code == "L02")
    assert text.endswith(f"The report would say:\n\n{finding.title}\n\n{finding.message}\n")


@pytest.mark.capture
def test_a_rule_that_yields_says_to_which() -> None:
    text = fired("W01", OCCUPANCY)
    assert re.search(r"\nyields to L04 \(occupancy-limited\) +speaks of these rows\n", text)
    assert re.search(r"\nyields to C04 \(contended-atomics\) +does not apply\n", text)
    assert "\nquiet: L04 speaks of its row\n" in text
    assert "\nfires with 1 row\n" in fired("W01", OCCUPANCY, "--set", "L04.max_occupancy=1")


@pytest.mark.capture
def test_a_threshold_may_be_another_one() -> None:
    text = fired("L02", PAGE, "--set", "L02.min_loss=0.9")
    assert "\n(no rows)\n" in text
    assert "\nparam min_loss                             0.9 share\n" in text
    assert "\nquiet: the query gives no rows\n" in text
    assert "The report would say" not in text


@pytest.mark.capture
def test_what_the_capture_lacks_is_said() -> None:
    text = fired("H01", PAGE)
    assert "\nrequires cuda_api                     not recorded\n" in text
    assert "\nnot evaluated: GPU activity was not recorded (nsys profile --trace=cuda,nvtx" in text


@pytest.mark.capture
def test_a_rule_of_one_s_own_is_tried_from_its_file(own: Path) -> None:
    text = fired(own, TIMELINE, "--limit", "1")
    assert "\nloop  kernel " in text
    assert "\n(2 more)\n" in text
    assert "\nfires with 3 rows\n" in text
    assert "4,320 launches of `vectorized_elementwise_kernel`" in text


@pytest.mark.capture
def test_an_unfinished_rule_shows_its_rows_all_the_same(own: Path) -> None:
    own.write_text(own.read_text("utf-8").replace("title: Written", f"title: {PLACEHOLDER}"), "utf-8")
    text = fired("U01", TIMELINE, "--rules", own.parents[1])
    assert "vectorized_elementwise_kernel" in text
    assert f"\nnot evaluated: still says '{PLACEHOLDER}' in title (gpudiag rules check)\n" in text


@pytest.mark.capture
def test_a_query_of_one_s_own_runs_in_the_sandbox(own: Path) -> None:
    own.write_text(own.read_text("utf-8").replace("from loop_gpu_op", "from read_csv('/etc/passwd')"), "utf-8")
    result = tried(own, TIMELINE)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{own}:13: query: calls the table function read_csv, which rules may not" in result.stderr


@pytest.mark.capture
@pytest.mark.parametrize(
    ("rule", "capture", "words"),
    [
        ("tail-efect", PAGE, "There is no rule 'tail-efect'; did you mean tail-effect"),
        ("nowhere/x.yaml", PAGE, "nowhere/x.yaml: is no file"),
        ("H01", "nowhere.sqlite", "nowhere.sqlite: there is no such file"),
    ],
)
def test_a_mistake_is_one_sentence(rule: str, capture: Path | str, words: str) -> None:
    result = tried(rule, capture)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.capture
def test_a_saved_report_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "report.json"
    saved.write_text(report_of(PAGE).model_dump_json(), "utf-8")
    assert "is a saved report: a rule is tried on the capture" in tried("L02", saved).stderr


def shown(rows: tuple[dict[str, object], ...], limit: int = 20) -> str:
    return page(Trial(library.load().find("H01"), rows, (), "fires", "", ""), limit)


def test_values_are_shown_as_the_query_gives_them() -> None:
    text = shown(({"kernel": "a\nb", "n": None, "share": 0.25, "all": True, "ids": list(range(9)), "ns": 12345678.0},))
    assert "kernel  n     share  all   ids                           ns\n" in text
    assert "a b     NULL  0.25   true  [0, 1, 2, 3, 4, 5, … 3 more]  12345678\n" in text


def test_wide_rows_become_blocks_of_lines() -> None:
    text = shown(tuple({f"column_{n}": n for n in range(20)} for _ in range(3)), limit=2)
    assert "\nrow 1\n  column_0   0\n  column_1   1\n" in text
    assert "\nrow 2\n" in text
    assert "\n(1 more)\n" in text
    assert "\nrow 3\n" not in text
