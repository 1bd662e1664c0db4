"""Numbers as Nsight Compute prints them: in the locale it ran in, which the file never states.

A details page follows the locale throughout (`7.265.598,32` or `7 265 598,32`). A raw page does so only for
values without a unit; those with a unit keep the point (`37.550880`) whatever the locale. So the notation is
decided once for a file, from the numbers that allow one reading only, and never number by number: `8.644` alone
could be either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import polars as pl

PageKind = Literal["details", "raw"]

_NUMERIC = r"^[-+]?[0-9][0-9.,' ]*$"
_GROUPED = re.compile(r"^\d{1,3}(?:SEP\d{2,3})*SEP\d{3}$".replace("SEP", "(?:[.,' ])"))


class MixedNotation(ValueError):
    """The numbers of one file contradict each other."""


@dataclass(frozen=True, slots=True)
class Notation:
    """A locale's way of writing numbers."""

    decimal: str = "."
    group: str = ","


def tidy(texts: pl.Expr) -> pl.Expr:
    """Cells with one kind of space and apostrophe, without a trailing list of instance values `(1; 2)`."""
    spaced = texts.str.replace_all("[\u00a0\u202f\u2009]", " ").str.replace_all("\u2019", "'")
    return spaced.str.strip_chars().str.replace(r"^([-+]?\d[\d.,' ]*?) *\([^()]*\)$", "${1}")


def shapes(texts: pl.Series) -> list[str]:
    """The distinct shapes of the numbers among tidy cells: digits as 9, a lone zero in front as Z (no group has it)."""
    numeric = texts.filter(texts.str.contains(_NUMERIC))
    return numeric.str.replace(r"^([-+]?)0([.,])", "${1}Z${2}").str.replace_all(r"\d", "9").unique().to_list()


def notation(found: Iterable[str], page: PageKind) -> Notation | None:
    """The notation that all `shapes` agree on, None when none has a separator; raises MixedNotation.

    A lone separator before exactly three digits is a group: neither page prints three decimals.
    """
    decimals: set[str] = set()
    groups: set[str] = set()
    for shape in found:
        shape_decimals, shape_groups = _evidence(shape.lstrip("+-"))
        decimals |= shape_decimals
        groups |= shape_groups
    if page == "raw" and ("," in decimals or "." in groups):
        decimals.discard(".")  # there a point before decimals says nothing: any locale may have it
    if len(decimals) > 1 or len(groups) > 1 or decimals & groups:
        raise MixedNotation
    if not decimals and not groups:
        return None
    decimal = next(iter(decimals), "," if groups & {".", " "} else ".")
    return Notation(decimal, next(iter(groups), "." if decimal == "," else ","))


def _evidence(shape: str) -> tuple[set[str], set[str]]:
    """(decimal, group) separators that one shape proves."""
    separators = [c for c in shape if c in ".,' "]
    if not separators:
        return set(), set()
    last = separators[-1]
    if len(set(separators)) > 1 and last in ".," and separators.count(last) == 1:
        return {last}, set(separators[:-1]) if len(set(separators[:-1])) == 1 else set()
    if len(set(separators)) == 1 and _GROUPED.match(shape):
        return set(), {last}
    if len(separators) == 1 and last in ".,":
        return {last}, set()
    return set(), set()


def number(cell: pl.Expr, exponents: pl.Expr, written: Notation, page: PageKind) -> pl.Expr:
    """The values of tidy cells times ten to `exponents`; null for what is not a number (`nan`, words, nothing).

    The power of ten is appended to the text before it is read: 4.789792 ms is 4789792 ns to the last digit.
    """
    group, decimal = re.escape(written.group), re.escape(written.decimal)
    grouped = rf"^[-+]?[1-9]\d{{0,2}}(?:{group}\d{{2,3}})*{group}\d{{3}}(?:{decimal}\d+)?$"
    ungrouped = rf"^[-+]?\d+(?:{decimal}\d+)?$"
    point = r"^[-+]?\d+\.\d+$" if page == "raw" else r"^$"
    pointed = (
        pl.when(cell.str.contains(grouped))
        .then(cell.str.replace_all(written.group, "", literal=True).str.replace(written.decimal, ".", literal=True))
        .when(cell.str.contains(point))
        .then(cell)
        .when(cell.str.contains(ungrouped))
        .then(cell.str.replace(written.decimal, ".", literal=True))
        .otherwise(None)
    )
    scaled = pl.concat_str([pointed, pl.lit("e"), exponents.cast(pl.String)])
    return scaled.cast(pl.Float64, strict=False)
