"""The layout of the SQL in rules and views, which `evaluation.format_sql` makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluation import format_sql

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for path in sorted((ROOT / "rules").rglob("*")) if path.suffix == ".sql"]
RULES = [path for path in sorted((ROOT / "rules").rglob("*.yaml")) if not path.name.endswith(".test.yaml")]


def queries() -> list[tuple[Path, str]]:
    texts = [(path, path.read_text("utf-8")) for path in (*FILES, *RULES)]
    block = re.compile(r"^query: \|\n((?:  .*\n|\n)+)", re.MULTILINE)
    sql = [(path, text) for path, text in texts if path.suffix == ".sql"]
    return sql + [(path, found[1]) for path, text in texts if path.suffix != ".sql" and (found := block.search(text))]


@pytest.mark.slow
def test_rules_and_views_are_laid_out() -> None:
    stale = [path.name for path, text in format_sql.layouts().items() if text != path.read_text("utf-8")]
    assert stale == [], "run python -m evaluation.format_sql"


def test_no_line_is_longer_than_120_characters() -> None:
    assert [(path.name, line) for path, sql in queries() for line in sql.splitlines() if len(line) > 120] == []


def test_select_lists_have_one_column_a_line() -> None:
    several = re.compile(r"^\s*select (?:distinct )?(?:[^(),'\[\n]|\([^()]*\))*, ", re.MULTILINE)
    assert [path.name for path, sql in queries() if several.search(sql)] == []


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT a, b FROM t", "select\n  a,\n  b\nfrom t\n"),
        ("select a from t where b between 1 and 2", "select a from t where b between 1 and 2\n"),
        (
            "with x as (select 1 as a),\ny as (  -- z\n select a from x) select a, 'B' as b from y",
            "with x as (\n  select 1 as a\n),\n-- z\ny as (\n  select a from x\n)\nselect\n  a,\n  'B' as b\nfrom y\n",
        ),
        (
            "select a.x from long_name a asof join " + "b" * 50 + " b on a.x = b.x and a.y >= b.y where a.z and b.z",
            f"select a.x\nfrom long_name a\nasof join {'b' * 50} b on a.x = b.x and a.y >= b.y\nwhere a.z and b.z\n",
        ),
        (
            "select case when " + "a" * 60 + " then 1 when " + "b" * 60 + " then 2 end as c",
            "select case\n  when " + "a" * 60 + " then 1\n  when " + "b" * 60 + " then 2\nend as c\n",
        ),
    ],
)
def test_a_statement_is_laid_out(sql: str, wanted: str) -> None:
    assert format_sql.formatted(sql) == wanted
    assert format_sql.formatted(wanted) == wanted
