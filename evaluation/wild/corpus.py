"""The recordings of fixtures/wild, and what is known of each without gpudiag: label, split, times measured."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evaluation import corpus, packed
from evaluation.corpus import ROOT

WILD = ROOT / "fixtures" / "wild"
BASE = "none"  # the variant without a planted fault
SLOWER = 1.1  # times the base: a fault that costs less is no fault to find
SPLITS = (
    *corpus.SPLITS,
    "first sight",
)  # the last: written by somebody who has not seen the rules, scored as they came


@dataclass(frozen=True)
class Label:
    """A recording's label: what it shows."""

    program: str
    fault: str
    split: str
    codes: tuple[str, ...]  # findings that name what is slow, the likeliest first; empty where no timeline shows it
    healthy: bool
    lost: bool  # the recording does not hold the loop's GPU work
    price: str | None  # how the fix can be priced, by its nature

    @property
    def name(self) -> str:
        return f"{self.program}.{self.fault}"

    @property
    def capture(self) -> Path:
        """The file that gpudiag reads."""
        return packed.recording(WILD / "captures" / self.name)

    @property
    def ticks(self) -> tuple[int, ...]:
        """Return when the program itself began each iteration (ns)."""
        return tuple(_document("times.json")[self.name]["ticks_ns"])

    @property
    def unprofiled(self) -> tuple[float, float] | None:
        """An iteration with the fault and without it (ms), each not profiled; None where they cannot be compared."""
        return _times(self.program, self.fault)

    @property
    def slight(self) -> bool:
        """Return whether the fault is planted and makes an unprofiled iteration hardly slower."""
        return self.unprofiled is not None and self.unprofiled[0] < SLOWER * self.unprofiled[1]

    @property
    def faulty(self) -> bool:
        """Return whether a finding has to name what is slow."""
        return bool(self.codes) and not self.slight


@cache
def _document(name: str) -> dict[str, Any]:
    text = (WILD / name).read_text("utf-8")
    return dict(json.loads(text) if name.endswith(".json") else yaml.safe_load(text))


def _times(program: str, fault: str) -> tuple[float, float] | None:
    """Return the median over windows with the fault and without. A process for each variant is better than alternating.

    In a single window of alternating runs the base comes first, while its process still loads and compiles: where some
    variant then is faster than the base, that base tells nothing.
    """
    for how in ("fresh", "alternating"):
        measured = _document("unprofiled.json").get(program, {}).get(how, {})
        if fault == BASE or not {fault, BASE} <= measured.keys():
            continue
        middle = {name: statistics.median(windows) for name, windows in measured.items()}
        cold = how == "alternating" and len(measured[BASE]) == 1 and middle[BASE] > min(middle.values())
        return None if cold else (middle[fault], middle[BASE])
    return None


@cache
def splits() -> dict[str, str]:
    """Program → one of SPLITS."""
    return {name: split for split, names in _document("split.yaml").items() for name in names}


@cache
def labels() -> tuple[Label, ...]:
    """Those of the recordings, by name."""
    found = []
    for capture in packed.recordings(WILD / "captures"):
        program, fault = packed.stem(capture).split(".")
        said = _document("labels.yaml").get(program, {}).get(fault, {})
        codes = () if "needs" in said else tuple(said.get("codes", ()))
        found.append(
            Label(program, fault, splits()[program], codes, bool(said.get("healthy")), bool(said.get("lost")),
                  said.get("price"))
        )  # fmt: skip
    return tuple(found)
