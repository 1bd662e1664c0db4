"""The least that reading a large capture can take, beside what gpudiag takes: the floors of docs/performance.md.

Each is a process of its own over the same file and columns:
python -m benchmarks.floors sqlite|pages CAPTURE NEEDED.json
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path


def with_sqlite(capture: Path, needed: dict[str, list[str]]) -> None:
    """Let SQLite's own C code touch every value that is needed."""
    with closing(sqlite3.connect(f"file:{capture}?mode=ro&immutable=1", uri=True)) as con:
        for table, columns in needed.items():
            con.execute(f"select {', '.join(f'max({name!r})' for name in columns)} from {table}".replace("'", '"'))


def with_pages(capture: Path, needed: dict[str, list[str]]) -> None:
    """Decode every needed integer from its page, and do nothing with it."""
    from gpudiag.ingest.sources.sqlite_pages import Pages, Unsuited

    with closing(sqlite3.connect(f"file:{capture}?mode=ro&immutable=1", uri=True)) as con:
        for table, columns in needed.items():
            names = [row[1] for row in con.execute(f'pragma table_info("{table}")')]
            root = con.execute("select rootpage from sqlite_master where name = ?", [table]).fetchone()[0]
            places = [names.index(name) for name in columns if "text" not in name.lower() or name.endswith("Id")]
            with closing(Pages(capture)) as pages:
                try:
                    for _ in pages.batches(root, len(names), places):
                        pass
                except Unsuited:  # tables of texts, which are small
                    continue


def main() -> None:
    """The command line."""
    how, capture, needed = sys.argv[1:]
    floor = {"sqlite": with_sqlite, "pages": with_pages}[how]
    floor(Path(capture), json.loads(Path(needed).read_text("utf-8")))


if __name__ == "__main__":
    main()
