"""The labelled captures: what each program is expected to show, and a report of each, made once a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpudiag.model import Report
from gpudiag.pipeline import explain

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "fixtures" / "captures"
WORKLOADS = ROOT / "fixtures" / "workloads"


@dataclass(frozen=True)
class Labelled:
    """One variant of one program, the capture that shows its cause, and what is expected of it."""

    slug: str
    variant: str
    role: str
    stack: str
    capture: Path
    expect: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.slug}-{self.variant.replace(':', '-')}"


def labelled(role: str) -> list[Labelled]:
    """Every variant with that role (slow, fixed, healthy); kernel causes are shown by the Nsight Compute page."""
    found = []
    for file in sorted(WORKLOADS.glob("*.expect.yaml")):
        slug = file.name.removesuffix(".expect.yaml")
        document = yaml.safe_load(file.read_text())
        for variant, about in document["variants"].items():
            expect = document["expect"].get(variant, {})
            if about["role"] == role:
                kernel = "ncu" in about["captures"] and str(expect.get("top"))[0] in "CKLW"
                suffix = "raw.csv.xz" if kernel else "sqlite.xz"
                capture = CAPTURES / slug / f"{variant.replace(':', '-')}.{suffix}"
                found.append(Labelled(slug, variant, role, document["stack"], capture, expect))
    return found


@cache
def report_of(path: Path) -> Report:
    return explain([path])


def line_of(place: dict[str, Any]) -> int:
    """The line number of the planted fault, found by its text so that it survives edits."""
    lines = (WORKLOADS / place["file"]).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if place["line_contains"] in line)
