"""Kernels that test cases start from: what a case may change, and how a mistake is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudiag.authoring import cases, kernel_presets, lint, scaffold
from gpudiag.errors import GpudiagError
from gpudiag.evaluate.engine import PLACEHOLDER
from gpudiag.library import load as library
from gpudiag.library import yaml_file

PRESETS = {
    "scan": kernel_presets.KernelPreset(
        about="A scan.", source="Chosen.", profile={"name": "scan(int*)", "grid": 64}, metrics={"a": 1, "b": 2}
    ),
    "sum": kernel_presets.KernelPreset(about="A sum.", source="Chosen.", profile={"name": "sum"}, metrics={"a": 3}),
}


def expanded(kernel: Any, **tables: Any) -> dict[str, Any]:
    return kernel_presets.expand({"kernel": kernel, "expect": [], **tables}, PRESETS)


def metrics(case: dict[str, Any]) -> list[tuple[int, str, float]]:
    return [(row["profile"], row["metric"], row["value"]) for row in case["kernel_metric"]]


def test_a_preset_stands_for_its_rows() -> None:
    case = expanded("scan")
    assert case["kernel_profile"] == [{"name": "scan(int*)", "grid": 64}]
    assert metrics(case) == [(0, "a", 1), (0, "b", 2)]
    assert "kernel" not in case


def test_a_case_changes_adds_and_leaves_out() -> None:
    case = expanded({"preset": "scan", "grid": 8, "block": 96, "metrics": {"a": 7, "b": None, "c": 9}})
    assert case["kernel_profile"] == [{"name": "scan(int*)", "grid": 8, "block": 96}]
    assert metrics(case) == [(0, "a", 7), (0, "c", 9)]


def test_several_kernels_are_numbered_before_own_rows() -> None:
    case = expanded(["scan", {"preset": "sum", "block": 32}], kernel_profile=[{"name": "own"}])
    assert [row["name"] for row in case["kernel_profile"]] == ["scan(int*)", "sum", "own"]
    assert metrics(case) == [(0, "a", 1), (0, "b", 2), (1, "a", 3)]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("scn", "there is no preset 'scn'; known are scan, sum"),
        ({"grid": 4}, "kernel wants the name of a preset"),
        ({"preset": "scan", "gird": 4}, "kernel_profile has no column gird; it has block, cc"),
        ({"preset": "scan", "metrics": {"bb": None}}, "the preset scan has no metric bb to leave out"),
        ({"preset": "scan", "metrics": [1]}, "metrics wants `metric: value`"),
        (3, "kernel wants the name of a preset"),
    ],
)
def test_a_mistake_is_named(kernel: Any, words: str) -> None:
    with pytest.raises(GpudiagError) as caught:
        expanded(kernel)
    assert words in str(caught.value)


def test_an_unknown_preset_has_the_line_of_its_key() -> None:
    known = library.load()
    text = "a case:\n  expect: []\n  kernel: nonsense\n"
    file = yaml_file.parse(text, Path("x.test.yaml"))
    result = cases.run_case("a case", file.data["a case"], known.find("K07"), known, file)
    assert result.line == 3
    assert "there is no preset 'nonsense'; known are" in result.problem


def test_each_packaged_preset_is_used_by_a_test() -> None:
    used = "".join(path.read_text("utf-8") for path in library.packaged_dir().rglob("*.test.yaml"))
    assert [name for name in kernel_presets.packaged() if name not in used] == []


def test_a_folder_may_have_presets_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / kernel_presets.FILE
    file.write_text("mine: {about: Mine., source: Chosen., profile: {name: k}, metrics: {a: 1}}\n")
    assert kernel_presets.of_folders([tmp_path])["mine"].metrics == {"a": 1}
    assert library.scan([tmp_path])[1] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("horner: {about: A., source: B., profile: {name: k}}\n", 1, "the preset horner exists already"),
        ("mine: {about: A., source: B.,\n  profile: {nam: k}}\n", 2, "kernel_profile has no column nam"),
        ("mine: {about: A., source: B., profile: {grid: 4}}\n", 1, "wants `name`"),
        ("mine: {about: A., profile: {name: k}}\n", 1, "source: Field required"),
        ("- mine\n", 1, "holds no preset"),
    ],
)
def test_the_check_reads_a_folder_s_presets(tmp_path: Path, text: str, line: int, words: str) -> None:
    (tmp_path / kernel_presets.FILE).write_text(text)
    [problem] = lint.check([tmp_path])
    assert (problem.path.name, problem.line) == (kernel_presets.FILE, line)
    assert words in problem.text


RULE = """\
query: |
  select list(profile) as profiles, short as kernel, any_value(grid) as blocks
  from kernel_facts where grid <= $max_kernel_ns group by short order by short
price: {kind: upper_bound, on: profiles, high: [shrink_kernel]}
message: Written {{ places[0].kernel|code }}.
why: >-
"""


@pytest.mark.slow
def test_a_folder_s_kernel_rule_is_checked_from_presets(tmp_path: Path) -> None:
    for path in scaffold.scaffold(tmp_path, "kernel", "few-blocks", "U01"):
        path.write_text(path.read_text("utf-8").replace(PLACEHOLDER, "Written"), "utf-8")
    rule = tmp_path / "kernel" / "few-blocks.yaml"
    before, _, rest = rule.read_text("utf-8").partition("query: |\n")
    rule.write_text(before + RULE + rest.partition("why: >-\n")[2], "utf-8")
    (tmp_path / kernel_presets.FILE).write_text(
        "mine: {about: A., source: B., profile: {name: k, grid: 64}, metrics: {launch__sm_count: 132}}\n"
    )
    fires = "  kernel: mine\n  expect: [{kernel: k, blocks: 64}]\n"
    quiet = "  kernel: {preset: mine, grid: 5200}\n  expect: []\n"
    test = rule.with_name("few-blocks.test.yaml")
    test.write_text("".join(f"case {number}:\n{fires if number % 2 else quiet}" for number in range(1, 7)))
    assert lint.check([tmp_path]) == []
    test.write_text(test.read_text().replace("5200", "4800", 1))
    [problem] = lint.check([tmp_path])
    assert problem.line == 6
    assert "gave 1 row instead of 0" in problem.text
    assert problem.text.endswith("it would stay quiet with max_kernel_ns below 4800 (it is 5000 ns)")
