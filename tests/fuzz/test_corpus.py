"""What the fuzzer found once stays fixed, and the fuzzer itself works: synthetic files, each with one fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paths import DATA, ROOT

pytestmark = pytest.mark.slow

KEPT = DATA / "fuzz"

# File → how its run ends, and what is said of it: the verdict, or words of the sentence that refuses it.
EXPECTED = {
    "a-budget-of-more-than-all.json": ("refused", "budget cannot be"),
    "a-fix-that-takes-less-than-nothing.json": ("refused", "after_ms cannot be"),
    "a-gpu-without-a-number.sqlite.xz": ("report", "cannot_tell"),  # could not be put in order
    "a-hundred-thousand-columns.csv.xz": ("refused", "more than ncu knows metrics"),  # took 3 GB
    "a-label-of-a-million-letters.csv.xz": ("report", "problems"),  # took quadratic time
    "a-million-line-breaks-in-a-cell.csv.xz": ("report", "problems"),  # took quadratic time
    "a-negative-duration.csv.xz": ("report", "problems"),
    "a-number-in-quotes.json": ("refused", "span_ms cannot be"),  # 1e999: endless once it was read
    "a-place-with-more-than-all.json": ("refused", "share cannot be"),
    "copies-of-less-than-nothing.sqlite.xz": ("report", "problems"),  # added up to less than nothing
    "idle-for-many-years.sqlite.xz": ("report", "problems"),  # the report could not be read again
    "kernels-of-one-name.sqlite.xz": ("report", "healthy"),  # which one was reported followed the order of rows
    "list-of-tables-is-malformed.sqlite.xz": (
        "refused",
        "the database is damaged",
    ),  # SQLite gave now this reason, now that
    "loops-longer-than-the-run.json": ("refused", "share_of_span cannot be"),
    "more-threads-than-a-gpu-starts.json.xz": ("report", "problems"),  # the report could not be read again
    "page-packed.details.csv.gz": ("refused", "FILE: the file is cut off"),  # named the unpacked file
    "percentages-beyond-all-measure.csv.xz": ("report", "cannot_tell"),  # the report could not be read again
    "row-ids-are-times.sqlite.xz": ("report", "cannot_tell"),  # a query for each million row ids up to the last
    "schema-is-not-utf8.sqlite.xz": ("refused", "the database is damaged"),  # Python failed on SQLite's own error
    "sums-beyond-64-bits.sqlite.xz": ("refused", "times or sizes that cannot be"),
    "stalls-in-gigabytes.csv.xz": ("report", "problems"),  # waits of more than all the time
}


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fuzz", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, str]]:
    done = fuzz("--again", str(KEPT))
    assert done.returncode == 0, done.stderr
    return {result["case"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_was_found_once_stays_fixed(results: dict[str, dict[str, str]], name: str) -> None:
    outcome, said = EXPECTED[name]
    assert (results[name]["outcome"], results[name]["kind"]) == (outcome, "")
    assert said in results[name]["note"]


def test_every_kept_input_has_an_expectation() -> None:
    assert {path.name for path in KEPT.iterdir()} - {"README.md"} == EXPECTED.keys()


def test_the_same_input_is_made_again_from_seed_and_number() -> None:
    from fuzz import plan
    from fuzz.samples import TOML

    samples = {"reports": [("a", {"a.json": b'{"x": [1, 2]}'})], "baselines": [("a", {"a.json": b"{}"})]}
    samples |= {"config": [("config", {"gpudiag.toml": TOML})], "exports": samples["reports"]}
    samples |= {"pages": samples["reports"], "ncu-rep": samples["reports"]}
    made = [plan.planned(7, number, ("report", "config")) for number in range(40)]
    assert made == [plan.planned(7, number, ("report", "config")) for number in range(40)]
    first, again = ([plan.built(one, samples) for one in made] for _ in range(2))
    assert first == again
    assert len({one.content for one in first}) > 20


def test_the_judge_finds_what_it_is_there_for(tmp_path: Path) -> None:
    from fuzz import judge
    from fuzz.given import Given

    given = Given({"a.sqlite": b""}, ["explain", "@a.sqlite"], "a.sqlite")
    said = {
        "Traceback (most recent call last):\n": "traceback printed",
        "gpudiag: a.sqlite: one\ntwo three four\n": "error of several lines",
        "gpudiag: the file is damaged somehow\n": "error names no file",
        f"gpudiag: a.sqlite: {'long ' * 100}\n": "error too long",
        "": "no sentence on stderr",
    }
    for text, kind in said.items():
        with pytest.raises(judge.Found) as found:
            judge.judged(given, tmp_path, 2, text, "", None)
        assert found.value.kind == kind
    with pytest.raises(judge.Found, match="NaN"):
        judge.strict('{"a": NaN}')
    with pytest.raises(judge.Found, match="negative figure"):
        judge.report({"run": {"loops": []}, "findings": [{"evidence": {"idle_ns": -1}}]})
