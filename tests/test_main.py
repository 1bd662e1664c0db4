"""The process of the command line: what it saves at its start, and what programs that it records do not inherit."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

THREADS = "OPENBLAS_NUM_THREADS"


Spend = Callable[[Sequence[str]], None]


@pytest.fixture
def spend_less(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spend]:
    monkeypatch.setenv(THREADS, "")
    monkeypatch.delenv(THREADS)
    before = gc.get_threshold()
    spend: Spend = importlib.import_module("gpudiag.__main__")._spend_less
    del sys.modules["gpudiag.__main__"]  # others run it as a program
    yield spend
    gc.set_threshold(*before)


def test_explaining_starts_no_threads_for_linear_algebra(spend_less: Spend) -> None:
    spend_less(["explain", "report.sqlite"])
    assert os.environ[THREADS] == "1"


@pytest.mark.parametrize("words", [["capture", "--", "python", "train.py"], ["record", "1"]])
def test_a_program_that_is_recorded_keeps_its_threads(spend_less: Spend, words: list[str]) -> None:
    spend_less(words)
    assert THREADS not in os.environ


def test_what_the_user_asks_for_stays(spend_less: Spend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "4")
    spend_less(["report.sqlite"])
    assert os.environ[THREADS] == "4"
