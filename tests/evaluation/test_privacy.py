"""No capture carries the machine it was made on: environment, host names, addresses, home folders."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evaluation.corpus import CAPTURES, ROOT

pytestmark = pytest.mark.capture

_spec = importlib.util.spec_from_file_location("privacy", ROOT / "fixtures" / "kit" / "privacy.py")
assert _spec is not None and _spec.loader is not None
privacy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(privacy)

FIXTURES = CAPTURES.parent
FOLDERS = sorted(path for name in ("captures", "repeats") for path in (FIXTURES / name).iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_a_capture_names_no_machine_and_no_person(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert {path: found for path in files if (found := privacy.scan(path))} == {}


def test_every_file_beside_the_captures_is_scanned() -> None:
    loose = [
        path
        for name in ("captures", "repeats", "wild/captures")
        for path in (FIXTURES / name).iterdir()
        if path.is_file()
    ]
    assert {path: found for path in loose if (found := privacy.scan(path))} == {}


def test_the_scanner_finds_what_it_should(tmp_path: Path) -> None:
    leak = tmp_path / "leak.csv"
    leak.write_text("a,b\nHOME=/home/somebody,1\n")
    assert privacy.scan(leak)
