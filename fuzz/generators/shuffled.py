"""The rows of a store in another order: a report must not depend on it, since many threads fill tables in any order."""

from __future__ import annotations

import re
from typing import Any

_MADE = re.compile(r"^create table (\w+)", re.M)


def shuffle_rows(seed: int) -> None:
    """From now on, put the rows of every canonical table and every materialised view in another order."""
    from gpudiag import prepare as opening
    from gpudiag.schema import TABLES
    from gpudiag.store import database

    create, prepare = database._create, opening.prepare

    def created(con: Any, file: str, statement: str) -> bool:
        empty = create(con, file, statement)
        for name in _MADE.findall(database.as_stored(statement)):
            _shuffle(con, name, seed)
        return empty

    def prepared(con: Any, library: Any, **more: Any) -> None:
        for table in TABLES:
            _shuffle(con, table.name, seed)
        prepare(con, library, **more)

    database._create, opening.prepare = created, prepared


def _shuffle(con: Any, table: str, seed: int) -> None:
    whole_row = f'hash({seed}, "{table}"::varchar)'
    con.execute(f'create temp table shuffled as select * from "{table}" order by {whole_row}')
    con.execute(f'delete from "{table}"; insert into "{table}" from shuffled; drop table shuffled')
