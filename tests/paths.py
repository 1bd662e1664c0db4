"""Where tests find the checkout, the captures and the data files of the tests themselves."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "fixtures" / "captures"
DATA = ROOT / "tests" / "data"
