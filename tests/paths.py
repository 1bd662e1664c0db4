"""Where tests find the checkout, the captures and the data files of the tests themselves."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "fixtures" / "captures"
DATA = ROOT / "tests" / "data"


def sarif_schema() -> Any:
    """Return the JSON Schema of SARIF 2.1.0."""
    return json.loads(lzma.decompress((DATA / "sarif-schema-2.1.0.json.xz").read_bytes()))
