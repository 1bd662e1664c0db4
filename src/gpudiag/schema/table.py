"""A canonical table and its columns, as the files beside this one declare them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: DuckDB type, unit (empty when it has none), meaning, and the value a test row gets by default."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    default: str = "null"


@dataclass(frozen=True, slots=True)
class Table:
    """A canonical table: what one row is, and the reader that it is kept for where none fills it yet."""

    name: str
    row: str
    columns: tuple[Column, ...]
    reserved: str = ""

    @property
    def ddl(self) -> str:
        body = ", ".join(f'"{c.name}" {c.type}' for c in self.columns)
        return f'create table "{self.name}" ({body})'

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


def col(name: str, type_: str, meaning: str, unit: str = "", default: str = "null") -> Column:
    return Column(name, type_, meaning, unit, default)


def word(*words: str) -> str:
    """The type of a text that is one of few: the store keeps its number, which is faster for millions of rows."""
    return "enum(" + ", ".join(f"'{one}'" for one in words) + ")"


ID = col("id", "integer", "dense identifier, unique in the store")
START = col("start", "bigint", "when it began", "ns", "0")
END = col("end", "bigint", "when it ended", "ns", "0")
FRAMES = "struct(function varchar, file varchar, line integer)[]"
