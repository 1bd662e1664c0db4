"""Damage to an Nsight Compute page: its header, its units, its numbers, the way its text is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from random import Random

from fuzz.generators import hostile

Rows = list[list[str]]
Step = Callable[[Rows, Random], None]

UNITS = (
    "%", "byte", "Kbyte", "Mbyte", "Gbyte/second", "byte/second", "nsecond", "usecond", "msecond", "second", "ns",
    "us", "cycle", "inst", "sector/request", "hz", "Ghz", "cycle/nsecond", "", "furlong", "KiB", "Tbyte", "block",
    "warp", "register/thread",
)  # fmt: skip
MOST = 4 << 20  # characters that repeated rows may have
CELLS = (
    "n/a", "nan", "-nan", "inf", "-inf", "(!) n/a", "no data", "1e400", "-1", "0", "0.0", "1e-320", "9" * 60,
    "1,234,567.8", "1.234.567,8", "1 234,5", "1'234.5", "1\u202f234,5", "\u0661\u0662\u0663", "0x1F", "12 (34; 56)",
    "1; 2; 3", "five", "12%", "--5", "+5", "1.2.3", "1,2,3", "(1024, 1, 1)", "(0, 0, 0)", "(-1, 1, 1)", "(a, b, c)",
    "(99999999999, 9999999999, 99999999)", "1024x1", "true", " 7 ", "7\t", "\u221e", "-0",
)  # fmt: skip


def cells(rows: Rows, random: Random) -> None:
    """Hostile cells in one column, in a row or in all."""
    column = random.randrange(_width(rows))
    everywhere = random.random() < 0.4
    put = _cell(random)
    at = random.randrange(len(rows))
    for number, row in enumerate(rows):
        if column < len(row) and (number == at or (everywhere and number > 0)):
            row[column] = put


def scattered(rows: Rows, random: Random) -> None:
    for row in rows[random.randrange(3) :]:
        for column in range(len(row)):
            if random.random() < 0.05:
                row[column] = _cell(random)[:2000]


def units(rows: Rows, random: Random) -> None:
    """Another unit: in the row of units of a raw page, in the column of units of a details page."""
    if "Metric Unit" in rows[0]:
        column = rows[0].index("Metric Unit")
        for row in rows[1:]:
            if column < len(row) and random.random() < 0.3:
                row[column] = random.choice(UNITS)
    elif len(rows) > 1:
        for column in range(11, len(rows[1])):
            if random.random() < 0.2:
                rows[1][column] = random.choice(UNITS)


def header(rows: Rows, random: Random) -> None:
    """Names of columns lost, repeated, changed; or columns moved."""
    kind, width = random.randrange(6), _width(rows)
    column, other = random.randrange(width), random.randrange(width)
    if kind == 0:
        rows[0][column % len(rows[0])] = rows[0][other % len(rows[0])]
    elif kind == 1:
        rows[0][column % len(rows[0])] = random.choice(
            (hostile.text(random), "ID", "Kernel Name", "gpu__time_duration.sum", "Metric Name")
        )
    elif kind == 2:
        for row in rows:
            del row[column : column + 1]
    elif kind == 3:
        for row in rows:
            if max(column, other) < len(row):
                row[column], row[other] = row[other], row[column]
    elif kind == 4:
        first = random.randrange(11)
        for row in rows:
            if first < len(row):
                row.append(row[first])
    else:
        rows[0][:] = rows[0][: random.randrange(len(rows[0]) + 1)]


def lines(rows: Rows, random: Random) -> None:
    """Rows lost, repeated, in another order, or of the wrong length."""
    kind, at = random.randrange(8), random.randrange(len(rows))
    if kind == 0:
        del rows[at]
    elif kind == 1:
        rows[at:at] = [list(row) for row in rows[1 : 1 + random.choice((1, 3, 50))]]
    elif kind == 2:
        random.shuffle(rows)
    elif kind == 3:
        rows[at] = rows[at][: random.randrange(len(rows[at]) + 1)]
    elif kind == 4:
        rows[at] = rows[at] + ["x"] * random.choice((1, 50))
    elif kind == 5:
        del rows[random.choice((1, 2, 3)) :]
    elif kind == 6:
        rows.insert(at, list(rows[0]))
    else:
        rows.insert(at, [])
    if not rows:
        rows.append([""])


def cut(rows: Rows, random: Random) -> None:
    """Rows that end early, as when a disk was full: the last one, or some in the middle."""
    for at in random.sample(range(len(rows)), min(len(rows), random.choice((1, 1, 3)))):
        if at and rows[at]:
            rows[at] = rows[at][: random.randrange(1, len(rows[at]) + 1)]
            if random.random() < 0.5:
                rows[at][-1] = rows[at][-1][: len(rows[at][-1]) // 2]


def ids(rows: Rows, random: Random) -> None:
    """Ids of launches and processes: all alike, absurd, none."""
    put = random.choice(("0", "", "-1", "99999999999999999999", "x", "1.5", None))
    for number, row in enumerate(rows[1:]):
        if row:
            row[0] = put if put is not None else str(number)


def grown(rows: Rows, random: Random) -> None:
    """Very many columns, rows, or very much in one cell."""
    kind = random.randrange(3)
    if kind == 0:
        count = random.choice((2000, 100_000))
        for number, row in enumerate(rows[:4]):
            row.extend(f"m{k}__x.sum" if number == 0 else "1" for k in range(count))
    elif kind == 1 and len(rows) > 2:
        size = sum(len(cell) + 3 for row in rows[-2:] for cell in row)
        rows.extend(list(row) for row in rows[-2:] * min(random.choice((50, 500)), MOST // max(1, size) + 1))
    else:
        row = rows[random.randrange(len(rows))]
        if row:
            row[random.randrange(len(row))] = random.choice(("x", '"', "<", "a,", "\n", "1")) * 300_000


STEPS: Mapping[str, Step] = {
    "cells": cells, "scattered": scattered, "units": units, "header": header, "lines": lines, "ids": ids,
    "grown": grown, "cut": cut,
}  # fmt: skip


def _width(rows: Rows) -> int:
    return max(1, *map(len, rows))


def _cell(random: Random) -> str:
    kind = random.random()
    return random.choice(CELLS) if kind < 0.6 else str(hostile.number(random)) if kind < 0.75 else hostile.text(random)


def damaged(name: str, content: bytes, random: Random, _: bytes) -> bytes:
    """The page after that step; unchanged when it is no table any more."""
    if name == "written":
        return written(content, random)
    try:
        csv.field_size_limit(1 << 30)
        rows = list(csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"), newline="")))
    except csv.Error:
        return content
    if not rows or not rows[0]:
        return content
    STEPS[name](rows, random)
    made = io.StringIO(newline="")
    csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return made.getvalue().encode("utf-8", "surrogateescape")


def written(content: bytes, random: Random) -> bytes:  # noqa: C901  a list of choices
    """The same table in another encoding, with other line ends, separators, quotes, or with talk around it."""
    kind = random.randrange(13)
    text = content.decode("utf-8", "replace")
    if kind == 0:
        return b"\xef\xbb\xbf" + content
    if kind == 1:
        return text.encode(random.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7")))
    if kind == 2:
        return content.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b"\r\r\n", b"\x0b", b"\x00\n")))
    if kind == 3:
        return b"\n".join(line + (b"\r" if number % 2 else b"") for number, line in enumerate(content.split(b"\n")))
    if kind == 4:
        return content.replace(b'","', random.choice((b'";"', b'"\t"', b'" ,"', b'"|"', b'", "')))
    if kind == 5:
        return content.replace(b'"', random.choice((b"", b"'", b'""')))
    if kind == 6:
        return (
            random.choice((b"==PROF== Connected to process 1\n" * 3, b"==WARNING== x\n", b"talk\n" * 500, b"\n\n"))
            + content
        )
    if kind == 7:
        return content + random.choice((b"==PROF== Disconnected\n", b'"', b'"unfinished', b"\n\n\n", content))
    if kind == 8:
        at = random.randrange(len(content) or 1)
        return content[:at] + b"==ERROR== interrupted\n" + content[at:]
    if kind == 9:
        return content.replace(
            b"e", random.choice((b"\xe9", b"\x00", b"\xff", b"\xc3\xa9")), random.choice((1, 5, 10**6))
        )
    if kind == 10:  # numbers as a German or a French machine prints them
        return (
            content.replace(b".", b"\x01")
            .replace(b",0", b"\x020")
            .replace(b"\x01", b",")
            .replace(b"\x02", random.choice((b".", b" ")))
        )
    if kind == 11:
        return content * random.choice((2, 5))
    return content.split(b"\n")[0] + random.choice((b"", b"\n", b'\n"a'))
