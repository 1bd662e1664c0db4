"""Damage to a folder of Parquet tables: types, values and names of columns, files that are no files."""

from __future__ import annotations

import io
from random import Random
from typing import Any

from fuzz.generators import bytewise, hostile
from fuzz.generators.sqlite_names import EVENTS
from fuzz.given import Given

FOLDER = "report.parquetdir/"


def tables(given: Given) -> list[str]:
    return sorted(name for name in given.files if name.endswith(".parquet"))


def _table(given: Given, random: Random) -> str | None:
    names = tables(given)
    events = [name for name in names if any(event in name for event in EVENTS)]
    return random.choice(events if events and random.random() < 0.7 else names) if names else None


def columns(given: Given, random: Random) -> None:
    """A column of another type or with other values, lost, renamed, or given twice."""
    import polars as pl

    name = _table(given, random)
    frame = _frame(given, name) if name else None
    if name is None or frame is None or not frame.columns:
        return
    column, kind = random.choice(frame.columns), random.randrange(7)
    try:
        if kind <= 1:
            frame = frame.with_columns(pl.Series(column, _series(frame.height, random)))
        elif kind == 2:
            frame = frame.with_columns(_cast(pl, column, random))
        elif kind == 3:
            frame = frame.drop(column)
        elif kind == 4:
            frame = frame.rename({column: hostile.text(random)[:300]})
        elif kind == 5:
            frame = frame.with_columns(
                pl.col(column).alias(random.choice((column.upper(), f"{column} ", column.lower(), "rid")))
            )
        else:
            frame = (
                frame.head(random.choice((0, 1, 2)))
                if random.random() < 0.5
                else pl.concat([frame, frame, frame]).reverse()
            )
        given.files[name] = _written(frame)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError, pl.exceptions.PanicException):
        return


def times(given: Given, random: Random) -> None:
    """Times that are missing, negative, run backwards, overlap, or leave the range."""
    import polars as pl

    name = _table(given, random)
    frame = _frame(given, name) if name else None
    if name is None or frame is None or not {"start", "end"} <= set(frame.columns):
        return
    start, end = pl.col("start").cast(pl.Int64, strict=False), pl.col("end").cast(pl.Int64, strict=False)
    by = random.choice((1, 10**6, 10**9, 2**61, -(10**9), -(10**6)))
    changes: tuple[tuple[Any, Any], ...] = (
        (end, start), (start, start), (-end, -start), (start + by, end + by), (start, end + by),
        (start, pl.lit(2**63 - 1)), (pl.lit(0), pl.lit(0)), (pl.lit(None), end), (start, pl.lit(None)),
        (9 * 10**12 - end, 9 * 10**12 - start), (start, start - 1), (pl.lit(5), pl.lit(2**62)),
    )  # fmt: skip
    new_start, new_end = random.choice(changes)
    some = pl.int_range(pl.len()) % random.choice((1, 2, 10)) == 0
    try:
        frame = frame.with_columns(
            pl.when(some).then(new_start).otherwise(start).alias("start"),
            pl.when(some).then(new_end).otherwise(end).alias("end"),
        )
        given.files[name] = _written(frame)
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        return


def files(given: Given, random: Random) -> None:
    """A table lost, empty, renamed, held twice, of another kind, or no file at all."""
    name = _table(given, random)
    if name is None:
        return
    kind = random.randrange(9)
    if kind == 0:
        del given.files[name]
    elif kind == 1:
        given.files[name] = random.choice((b"", b"PAR1", b"PAR1PAR1", b"hello", b"PAR1\x00\x00\x00\x00PAR1"))
    elif kind == 2:
        word = hostile.text(random).replace("/", "_").replace("\x00", "")[:60].strip("\r\n") or "x"
        given.files[f"{FOLDER}{word}.parquet"] = given.files.pop(name)
    elif kind == 3:
        given.files[f"{FOLDER}second.{name.rpartition('/')[2]}"] = given.files[name]
    elif kind == 4:
        given.files[name] = given.files[random.choice(tables(given))]
    elif kind == 5:
        del given.files[name]
        given.special[name] = random.choice(
            ("folder", "fifo", "link /dev/zero", "link nowhere", "link .", "link /etc/passwd")
        )
    elif kind == 6:
        given.files[
            FOLDER + random.choice(("readme.txt", "x.parquet", "a[b]*?.parquet", "'.parquet", "StringIds.PARQUET"))
        ] = given.files[name]
    elif kind == 7:
        for other in tables(given):
            if "StringIds" not in other and random.random() < 0.5:
                del given.files[other]
    else:
        given.files[name] = given.files[name][: random.randrange(len(given.files[name]) or 1)]


def content(given: Given, random: Random) -> None:
    """The bytes of a table, most often those of its footer."""
    name = _table(given, random)
    if name is None:
        return
    made = given.files[name]
    step = random.choice(sorted(bytewise.STEPS))
    footer = int.from_bytes(made[-8:-4], "little") if len(made) > 12 else 0
    if 0 < footer < len(made) - 12 and random.random() < 0.6:
        head, tail = made[: -footer - 8], made[-footer - 8 :]
        given.files[name] = head + bytewise.damaged(random.choice(("flip", "overwrite")), tail, random, b"")
    else:
        given.files[name] = bytewise.damaged(step, made, random, given.files[random.choice(tables(given))])


STEPS = {"columns": columns, "times": times, "files": files, "content": content}


def _frame(given: Given, name: str) -> Any:
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(given.files[name]))
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        return None


def _written(frame: Any) -> bytes:
    made = io.BytesIO()
    frame.write_parquet(made, row_group_size=64 if frame.height % 2 else None)
    return made.getvalue()


def _series(rows: int, random: Random) -> list[Any]:
    kind = random.randrange(6)
    if kind == 0:
        return [None] * rows
    if kind == 1:
        return [
            random.choice((0, 1, -1, 2**62, 2**63 - 1, -(2**63), 2**31, random.getrandbits(40))) for _ in range(rows)
        ]
    if kind == 2:
        return [hostile.text(random)[:2000].encode("utf-8", "replace").decode() for _ in range(rows)]
    if kind == 3:
        return [random.choice((1.5, float("nan"), float("inf"), -1e308, 1e18, None)) for _ in range(rows)]
    if kind == 4:
        return [random.choice(hostile.BYTES) for _ in range(rows)]
    return [[1, 2]] * rows if random.random() < 0.5 else [{"a": 1}] * rows


def _cast(pl: Any, column: str, random: Random) -> Any:
    to = random.choice((
                            pl.String, pl.Float64, pl.Float32, pl.Int8, pl.Int32, pl.UInt64, pl.Boolean, pl.Binary,
                            pl.Date, pl.Datetime("ns"), pl.Duration, pl.Decimal(38, 2), pl.Categorical,
                            pl.List(pl.Int64), pl.Int128,
                        ))  # fmt: skip
    return pl.col(column).cast(to, strict=False)
