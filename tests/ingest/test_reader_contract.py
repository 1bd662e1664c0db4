"""A new reader is a module and a line in the registry: `toy_reader` shows all that one has to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import toy_reader
from gpudiag.cli import main
from gpudiag.ingest import registry

ITERATIONS, LAUNCHES = 12, 20


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "READERS", (*registry.READERS, toy_reader.READER))


def trace(*extra: str) -> str:
    """Iterations of tiny kernels, for each of which the GPU waits: a launch takes 20 µs, a kernel 3 µs."""
    lines = ["toy-trace 1", "gpu Toy-GPU 40"]
    for iteration in range(ITERATIONS):
        begin = iteration * LAUNCHES * 20
        lines.append(f"range {begin} {LAUNCHES * 20 - 1} step")
        for launch in range(LAUNCHES):
            number, start = iteration * LAUNCHES + launch, begin + launch * 20
            lines += [f"call {start} 8 cudaLaunchKernel {number}", f"kernel {start + 9} 3 add_{launch % 4} {number}"]
    return "\n".join([*lines, *extra, ""])


def explain(*files: Path) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, files), "--format", "json", "--no-cache"])


def report(*files: Path) -> dict[str, Any]:
    done = explain(*files)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_registered_reader_is_all_that_a_report_needs(tmp_path: Path) -> None:
    found = report(written(tmp_path / "anything.txt", trace()))
    assert [(one["kind"], one["producer"], one["file"]) for one in found["inputs"]] == [
        ("toy", "Toy Profiler", "anything.txt")
    ]
    [loop] = found["run"]["loops"]
    assert (loop["name"], loop["source"]) == ("step", "nvtx")
    assert loop["iteration_ms"] == pytest.approx(0.02 * LAUNCHES, rel=0.01)
    assert found["findings"][0]["code"] == "H01"


@pytest.mark.slow
def test_what_a_format_lacks_is_not_evaluated(tmp_path: Path) -> None:
    found = report(written(tmp_path / "a.txt", trace()))
    reasons = {one["code"]: one["reason"] for one in found["not_evaluated"]}
    assert reasons["D06"] == "operating system calls were not recorded"


@pytest.mark.slow
def test_two_files_of_a_reader_make_one_report(tmp_path: Path) -> None:
    files = [written(tmp_path / name, trace(f"kernel {end} 5 last 9999")) for name, end in (("a", 6000), ("b", 6001))]
    assert [one["file"] for one in report(*files)["inputs"]] == ["a", "b"]


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", trace("kernel soon 5 add 1"))
    done = explain(file)
    assert done.exit_code == 2
    line = len(trace().splitlines()) + 1
    assert done.stderr.strip().endswith(f"{file}:{line}: this is no line of a toy trace; record it again.")


def test_without_its_line_the_format_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "READERS", registry.READERS[:-1])
    done = explain(written(tmp_path / "a.txt", trace()))
    assert done.exit_code == 2
    assert "not a profile" in done.stderr


def test_the_example_stays_short_enough_to_read() -> None:
    assert len(Path(toy_reader.__file__).read_text().splitlines()) <= 100
