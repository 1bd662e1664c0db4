"""Answers about files of the same names and content, made once: for tests of what is done with an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudiag import pipeline
from gpudiag.options import Options

_made: dict[tuple[object, ...], Any] = {}


def remember(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `pipeline.pictured` and `pipeline.next_steps` answer a second time as they did; errors are raised anew."""
    for name in ("pictured", "next_steps"):
        monkeypatch.setattr(pipeline, name, _once(name, getattr(pipeline, name)))


def _once(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    def answer(paths: Sequence[Path], options: Options = pipeline.DEFAULT) -> Any:
        files = tuple((path.name, hashlib.sha256(path.read_bytes()).digest()) for path in paths)
        key = (name, files, repr(replace(options, progress=Options().progress)))
        if key not in _made:
            _made[key] = make(paths, options)
        return _made[key]

    return answer
