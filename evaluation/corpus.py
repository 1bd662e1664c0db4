"""The labelled corpus: which program shows which fault, where its captures lie, and what was measured of it.

Programs and their expectations are in fixtures/workloads, captures and labels in fixtures/captures, the division into
development and validation programs in fixtures/split.yaml.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evaluation.packed import is_page, page, stored
from gpudiag.library.catalogue import Library
from gpudiag.library.load import load

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "fixtures" / "captures"
WORKLOADS = ROOT / "fixtures" / "workloads"
SPLIT = ROOT / "fixtures" / "split.yaml"
PENDING = ROOT / "fixtures" / "pending.yaml"

SPLITS = ("development", "validation")
PENDING_KINDS = ("captures", "times", "profiles", "again")
KERNEL_FAMILIES = "CKLW"  # shown by an Nsight Compute page, not by the timeline


@dataclass(frozen=True)
class Case:
    """One variant of one program, the captures that show its cause (one a rank), and what is expected of it."""

    slug: str
    variant: str
    role: str  # slow, fixed or healthy
    stack: str
    split: str  # development or validation
    captures: tuple[Path, ...]  # as they are kept: evaluation.packed opens them
    expect: dict[str, Any] = field(hash=False)
    annotated: bool = True  # false: the same run without NVTX ranges
    sampled: bool = True  # whether Python stacks were sampled

    def __str__(self) -> str:
        return self.key.replace("/", "-").replace(":", "-")

    @property
    def key(self) -> str:
        """program/variant, as other files name it."""
        return f"{self.slug}/{self.variant}{self.suffix}"

    @property
    def suffix(self) -> str:
        """Return the part of the name that distinguishes this capture from the variant's main one."""
        if not self.annotated:
            return "/no-nvtx"
        if self.joined:
            return "/both"
        return "/kernels" if self.kernel_page and self.role != "slow" else ""

    @property
    def joined(self) -> bool:
        """Return whether a timeline and a kernel page are given together."""
        return len({is_page(path) for path in self.captures}) > 1

    @property
    def taken(self) -> bool:
        """Return whether its captures are there."""
        return all(path.exists() for path in self.captures)

    @property
    def capture(self) -> Path:
        """The first rank's."""
        return self.captures[0]

    @property
    def kernel_page(self) -> bool:
        """Return whether the capture is an Nsight Compute page."""
        return is_page(self.capture)


@cache
def splits() -> dict[str, str]:
    """Program → development or validation."""
    document = yaml.safe_load(SPLIT.read_text())
    return {slug: split for split in SPLITS for slug in document[split]}


@cache
def pending(what: str) -> dict[str, str]:
    """Return what is still missing and why; `what` is one of PENDING_KINDS."""
    return dict(yaml.safe_load(PENDING.read_text())[what] or {})


def missing() -> set[str]:
    """Return what was not captured: programs that fixtures/pending.yaml names as a whole, else single captures."""
    return {c.slug if c.slug in pending("captures") else c.key for c in cases() if not c.taken}


@cache
def rule_codes() -> frozenset[str]:
    """The codes that the library knows."""
    return frozenset(rule.code for rule in library().rules)


@cache
def library() -> Library:
    """The packaged rules and settings, read once."""
    return load()


@cache
def cases() -> tuple[Case, ...]:
    """Every captured variant of every program."""
    found: list[Case] = []
    for file in sorted(WORKLOADS.glob("*.expect.yaml")):
        found += _cases_of(file.name.removesuffix(".expect.yaml"), yaml.safe_load(file.read_text()))
    return tuple(found)


@cache
def document(slug: str) -> dict[str, Any]:
    """A program's whole `.expect.yaml`."""
    return dict(yaml.safe_load((WORKLOADS / f"{slug}.expect.yaml").read_text()))


def _cases_of(slug: str, document: dict[str, Any]) -> list[Case]:
    found = []
    for variant, about in document["variants"].items():
        if not about["captures"]:  # timed only
            continue
        expect = document["expect"].get(variant) or {}
        kernel = "ncu" in about["captures"] and str(expect.get("top"))[0] in KERNEL_FAMILIES
        stem, folder = variant.replace(":", "-"), CAPTURES / slug
        ranks = [f".rank{rank}" for rank in range(document["ranks"])] if document.get("ranks", 1) > 1 else [""]
        timelines = tuple(stored(folder / f"{stem}{rank}") for rank in ranks)
        profile = page(folder / f"{stem}.raw.csv")
        facts = {
            "slug": slug,
            "variant": variant,
            "role": about["role"],
            "stack": document["stack"],
            "split": splits().get(slug, "in neither half of fixtures/split.yaml"),
            "expect": expect,
            "sampled": (WORKLOADS / f"{slug}.py").exists() and about.get("python_sampling", True),
        }
        found.append(Case(captures=(profile,) if kernel else timelines, **facts))
        if about["role"] != "slow" and "ncu" in about["captures"]:  # the kernel page tempts as much as the timeline
            found.append(Case(captures=(profile,), **facts))
        if about["role"] != "fixed" and {"nsys", "ncu"} <= set(about["captures"]) and document.get("ranks", 1) == 1:
            found.append(Case(captures=(*timelines, profile), **facts))
        if variant in document.get("no_nvtx", []):
            found.append(Case(captures=(stored(folder / f"{stem}.no-nvtx"),), annotated=False, **facts))
    return found


@cache
def label(slug: str) -> dict[str, Any]:
    """Return what was measured of a program (label.json); empty when nothing was."""
    path = CAPTURES / slug / "label.json"
    try:
        return dict(json.loads(path.read_text())) if path.exists() else {}
    except ValueError as error:
        raise SystemExit(f"{path}: this label is damaged ({error}); restore it or measure it again.") from error


def iteration_ms(slug: str, variant: str) -> float | None:
    """The unprofiled time of one iteration (ms): the median over fresh processes."""
    measured = label(slug).get("variants", {}).get(variant, {}).get("unprofiled", {}).get("iteration_ms")
    return float(measured) if measured else None


def line_of(place: dict[str, Any]) -> int:
    """The line number of the planted fault, found by its text so that it survives edits."""
    lines = (WORKLOADS / place["file"]).read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if place["line_contains"] in line]
    if not found:
        raise SystemExit(f"{place['file']}: no line contains {place['line_contains']!r}, which its label names.")
    return found[0]


def one_a_line(rows: dict[str, dict[str, Any]]) -> str:
    """A table as JSON, a row on each line without its empty texts and lists: small to keep, and a change of one row
    shows as one line.
    """
    filled = {
        name: {key: value for key, value in row.items() if value not in ("", (), [])} for name, row in rows.items()
    }
    lines = (
        f"{json.dumps(name)}:{json.dumps(filled[name], sort_keys=True, separators=(',', ':'))}" for name in sorted(rows)
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"
