"""The file `rules/views/shapes.json`: columns of the views, and when they are empty."""

from __future__ import annotations

from gpudiag import prepare
from gpudiag.library.catalogue import Library
from gpudiag.store import database, shapes


def text(library: Library) -> str:
    """Return the file's text for the packaged views and the rules about captures."""
    con = database.create(small=True)
    prepare.find_loops(con, library)
    database.load_views(con, library.capture_views, with_macros=False)
    literals = database.setting_literals(con)
    bodies = {
        name: database.select_of(statement)
        for _, sql in library.capture_views
        for name, statement in database.named_views(database.with_settings(sql, literals))
    }
    queries = [rule.query for rule in library.packaged_rules if rule.about != "job"]
    return shapes.content(con, library.capture_views, library.setting_values, bodies, queries)
