"""Profiled kernels under the roofline limits of their GPU: one drawing for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from gpudiag.model import Kernel
from gpudiag.report.html.markup import name
from gpudiag.report.wording import kernel_words
from gpudiag.text.format import num, pct

NUMBERED = 10  # the longest kernels: they are listed below the drawing
DRAWN = 200  # kernels, the longest: more would hide one another
CLOCKS = 1.1  # ridges nearer to each other than this factor differ by the clocks of the launches: one roof
DECADES = 3  # more need no marks between them
LEFT, RIGHT, TOP, BOTTOM = 11.0, 97.0, 6.0, 88.0  # percent of the drawing


class Dot(NamedTuple):
    """A kernel. number: its place in the list, 0 where it is not in it; kind: the place of its roof."""

    number: int
    name: str
    x: str
    y: str
    kind: int
    summary: str


class Roof(NamedTuple):
    """A precision's roof: DRAM bandwidth up to the ridge, from there the arithmetic units."""

    precision: str
    ridge: str
    ridge_x: str
    foot_x: str
    foot_y: str


class Roofline(NamedTuple):
    """Places in percent. y is the part of the peak rate of the precision's operations, x operations a byte of DRAM."""

    roofs: list[Roof]
    roof_y: str
    dots: list[Dot]
    x_ticks: list[tuple[str, str]]
    y_ticks: list[tuple[str, str]]
    missing: int  # kernels that are not drawn


class Point(NamedTuple):
    """A kernel by operations a byte and part of the peak rate; roof: the place of its own."""

    kernel: Kernel
    x: float
    y: float
    roof: int


def roofline(kernels: Sequence[Kernel]) -> Roofline | None:
    """The drawing of these kernels, the longest first; None where no operations and bytes were counted."""
    roofs, points = placed(kernels)
    if not points:
        return None
    across = [*(ridge for _, ridge in roofs), *(point.x for point in points)]
    low_x, high_x = _down(min(across) / 2), _up(max(across) * 2)
    low_y = _down(min(1.0, *(point.y for point in points)) / 2)

    def place_x(x: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * math.log(x / low_x) / math.log(high_x / low_x):.2f}%"

    def place_y(y: float) -> str:
        return f"{BOTTOM - (BOTTOM - TOP) * math.log(y / low_y) / math.log(1 / low_y):.2f}%"

    def drawn(precision: str, ridge: float) -> Roof:
        foot = max(low_x, low_y * ridge)  # where the memory roof enters the drawing
        words = kernel_words.PRECISIONS.get(precision, precision)
        return Roof(words, num(ridge), place_x(ridge), place_x(foot), place_y(foot / ridge))

    dots = [
        Dot(
            number if number <= NUMBERED else 0,
            name(point.kernel.name),
            place_x(point.x),
            place_y(max(low_y, min(1.0, point.y))),
            point.roof,
            _summary(point),
        )
        for number, point in enumerate(points, 1)
    ]
    return Roofline(
        [drawn(*roof) for roof in roofs],
        place_y(1.0),
        dots,
        [(place_x(x), num(x)) for x in _marks(low_x, high_x)],
        [(place_y(y), pct(y)) for y in _marks(low_y, 1.0)],
        len(kernels) - len(points),
    )


def placed(kernels: Sequence[Kernel]) -> tuple[list[tuple[str, float]], list[Point]]:
    """Roofs, as precision and ridge, and the kernels under them, in their order."""
    known = [kernel for kernel in kernels if _counted(kernel)][:DRAWN]
    roofs = _roofs(known)
    return roofs, [_point(kernel, roofs) for kernel in known]


def _counted(kernel: Kernel) -> bool:
    facts = kernel.facts
    return bool(facts.get("intensity", 0) >= kernel_words.AWAKE and facts.get("ridge") and facts.get("dram_pct"))


def _roofs(kernels: Sequence[Kernel]) -> list[tuple[str, float]]:
    """Precisions and ridges; launches at other clocks share the roof of the median."""
    found: list[tuple[str, list[float]]] = []
    for precision, ridge in sorted((kernel.facts["precision"], kernel.facts["ridge"]) for kernel in kernels):
        if found and found[-1][0] == precision and ridge <= found[-1][1][0] * CLOCKS:
            found[-1][1].append(ridge)
        else:
            found.append((precision, [ridge]))
    return [(precision, median(ridges)) for precision, ridges in found]


def _point(kernel: Kernel, roofs: Sequence[tuple[str, float]]) -> Point:
    """Up: the bytes moved, as a part of the bandwidth, times the operations for each, over those at its own ridge."""
    intensity, ridge = kernel.facts["intensity"], kernel.facts["ridge"]
    own = [at for at, (precision, _) in enumerate(roofs) if precision == kernel.facts["precision"]]
    nearest = min(own, key=lambda at: abs(math.log(roofs[at][1] / ridge)))
    return Point(kernel, intensity, float(kernel.facts["dram_pct"] / 100 * intensity / ridge), nearest)


def _summary(point: Point) -> str:
    return (
        f"{num(point.x)} operations a byte, {pct(point.y)} of the compute peak,"
        f" {pct(point.kernel.facts['dram_pct'] / 100)} of the memory's;"
        f" nearest limit: {kernel_words.limit(point.kernel)}"
    )


def _down(value: float) -> float:
    return float(10.0 ** math.floor(math.log10(value)))


def _up(value: float) -> float:
    return float(10.0 ** math.ceil(math.log10(value)))


def _marks(low: float, high: float) -> list[float]:
    """Powers of ten; over a short range twice and five times those as well."""
    powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= DECADES else (1,)
    return [step * 10.0**power for power in powers for step in steps if step * 10.0**power <= high * 1.001]
