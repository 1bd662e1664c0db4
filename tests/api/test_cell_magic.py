"""`%%gpudiag` with stand-ins for IPython's shell and for torch.profiler; what the latter writes is synthetic."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import gpudiag
from torch_stand_in import StandIn, stand_in


class Shell:
    """IPython's shell as far as a cell magic uses it: errors are shown and returned, not raised."""

    def __init__(self) -> None:
        self.magics: dict[str, Callable[[str, str], Any]] = {}
        self.user_ns: dict[str, Any] = {"sleep": time.sleep}

    def register_magic_function(self, magic: Callable[[str, str], Any], kind: str, name: str) -> None:
        assert kind == "cell"
        self.magics[name] = magic

    def run_cell(self, cell: str, *, store_history: bool) -> SimpleNamespace:
        assert not store_history
        error: BaseException | None = None
        try:
            exec(cell, self.user_ns)
        except (ZeroDivisionError, KeyboardInterrupt) as raised:
            error = raised
        return SimpleNamespace(error_before_exec=None, error_in_exec=error)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    stand_in(monkeypatch, cuda=True)
    made = Shell()
    gpudiag.load_ipython_extension(made)
    return made


@pytest.mark.slow
def test_a_cell_becomes_a_report(shell: Shell) -> None:
    report = shell.magics["gpudiag"]("", "x = 1")
    assert shell.user_ns["x"] == 1
    assert isinstance(report, gpudiag.Report) and report.loops["source"].to_list() == ["period"]


@pytest.mark.slow
def test_the_cell_marks_its_iterations(shell: Shell) -> None:
    report = shell.magics["gpudiag"]("p --iteration-time 0.9ms", "for _ in range(10): p.step()")
    assert report.loops.select("name", "source").row(0) == ("ProfilerStep", "nvtx")
    assert shell.user_ns["p"].path.exists()


@pytest.mark.slow
def test_the_options_are_those_of_profile(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    torch: StandIn = stand_in(monkeypatch, cuda=True)
    shell.magics["gpudiag"]("--no-stacks --memory", "pass")
    assert [torch.options[name] for name in ("with_stack", "profile_memory")] == [False, True]


@pytest.mark.slow
def test_a_cell_that_hangs_is_interrupted(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    hangs = "try:\n    sleep(30)\nexcept Exception:\n    sleep(30)"
    report = shell.magics["gpudiag"]("--limit 50ms", hangs)
    assert isinstance(report, gpudiag.Report)
    assert "interrupted after 50ms (--limit)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("", "1 / 0", "the cell failed, so that nothing is explained"),
        ("a b", "", "unrecognized arguments: b; usage: %%gpudiag"),
        ("1a", "", "1a is no name of a variable"),
        ("--limit soon", "", "'soon' is not like 3.57ms"),
        ("'", "", "No closing quotation"),
    ],
)
def test_what_goes_wrong_is_a_sentence(
    shell: Shell, capsys: pytest.CaptureFixture[str], line: str, cell: str, said: str
) -> None:
    assert shell.magics["gpudiag"](line, cell) is None
    (written,) = capsys.readouterr().err.splitlines()
    assert written.startswith("gpudiag: ") and said in written


def test_without_a_gpu_the_cell_says_so(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, cuda=False)
    assert shell.magics["gpudiag"]("", "pass") is None
    assert "holds work of the CPU only" in capsys.readouterr().err
