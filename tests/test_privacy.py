"""No capture carries the machine it was made on: environment, host names, addresses, home folders."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from corpus import CAPTURES, ROOT

_spec = importlib.util.spec_from_file_location("privacy", ROOT / "fixtures" / "kit" / "privacy.py")
assert _spec is not None and _spec.loader is not None
privacy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(privacy)

FIXTURES = CAPTURES.parent
FILES = sorted(path for name in ("captures", "repeats") for path in (FIXTURES / name).rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_a_capture_names_no_machine_and_no_person(path: Path) -> None:
    assert privacy.scan(path) == []


def test_the_scanner_finds_what_it_should(tmp_path: Path) -> None:
    leak = tmp_path / "leak.csv"
    leak.write_text("a,b\nHOME=/home/somebody,1\n")
    assert privacy.scan(leak)
