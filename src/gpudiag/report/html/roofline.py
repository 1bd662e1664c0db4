"""Profiled kernels under the roofline limits of their GPU, and their stall reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gpudiag.model import Kernel
from gpudiag.report.html.markup import name
from gpudiag.report.wording import kernel_words
from gpudiag.text.format import num, pct

KERNELS = 10
DECADES = 3  # more need no marks between them
LEFT, RIGHT, TOP, BOTTOM = 11.0, 97.0, 6.0, 88.0  # percent of the drawing


class Dot(NamedTuple):
    number: int
    name: str
    x: str
    y: str
    summary: str


class Roofline(NamedTuple):
    """Places in percent. y is the part of the peak rate of the precision's operations, x operations a byte of DRAM."""

    precision: str
    ridge: str
    ridge_x: str
    roof_y: str
    foot_x: str
    foot_y: str
    dots: list[Dot]
    x_ticks: list[tuple[str, str]]
    y_ticks: list[tuple[str, str]]


def rooflines(kernels: Sequence[Kernel]) -> list[Roofline]:
    """A drawing for each precision and roof that the longest kernels were measured against."""
    groups: dict[tuple[str, float], list[Kernel]] = {}
    for kernel in kernels[:KERNELS]:
        facts = kernel.facts
        if facts.get("intensity", 0) >= kernel_words.AWAKE and facts.get("ridge") and facts.get("dram_pct"):
            groups.setdefault((facts["precision"], facts["ridge"]), []).append(kernel)
    return [_drawn(precision, ridge, own) for (precision, ridge), own in groups.items()]


def _drawn(precision: str, ridge: float, kernels: Sequence[Kernel]) -> Roofline:
    at = [(kernel.facts["intensity"], _rate(kernel, ridge)) for kernel in kernels]
    low_x = _down(min([ridge, *(x for x, _ in at)]) / 2)
    high_x = _up(max([ridge, *(x for x, _ in at)]) * 2)
    low_y = _down(min(1.0, *(y for _, y in at)) / 2)

    def place_x(x: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * math.log(x / low_x) / math.log(high_x / low_x):.2f}%"

    def place_y(y: float) -> str:
        return f"{BOTTOM - (BOTTOM - TOP) * math.log(y / low_y) / math.log(1 / low_y):.2f}%"

    foot = max(low_x, low_y * ridge)  # where the memory roof enters the drawing
    dots = [
        Dot(
            number,
            name(kernel.name),
            place_x(x),
            place_y(max(low_y, min(1.0, y))),
            f"{num(x)} operations a byte, {pct(y)} of the compute peak, {pct(kernel.facts['dram_pct'] / 100)} of the"
            f" memory's; nearest limit: {kernel_words.limit(kernel)}",
        )
        for number, (kernel, (x, y)) in enumerate(zip(kernels, at, strict=True), 1)
    ]
    return Roofline(
        kernel_words.PRECISIONS.get(precision, precision), num(ridge), place_x(ridge), place_y(1.0), place_x(foot),
        place_y(foot / ridge), dots,
        [(place_x(x), num(x)) for x in _marks(low_x, high_x)], [(place_y(y), pct(y)) for y in _marks(low_y, 1.0)],
    )  # fmt: skip


def _rate(kernel: Kernel, ridge: float) -> float:
    """The part of the peak operations a second: bytes moved times operations for each."""
    return float(kernel.facts["dram_pct"] / 100 * kernel.facts["intensity"] / ridge)


def _down(value: float) -> float:
    return float(10.0 ** math.floor(math.log10(value)))


def _up(value: float) -> float:
    return float(10.0 ** math.ceil(math.log10(value)))


def _marks(low: float, high: float) -> list[float]:
    """Powers of ten; over a short range twice and five times those as well."""
    powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= DECADES else (1,)
    return [step * 10.0**power for power in powers for step in steps if step * 10.0**power <= high * 1.001]
