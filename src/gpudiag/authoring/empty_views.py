"""Stored views that stay empty on the same rows in every test case need not be filled again.

DuckDB plans a statement anew each time, a prepared one too, and on a handful of rows planning is nearly all of the
work. A third of all views that cases fill stay empty because of rows that another case had as well: no timeline beside
a profiled kernel, no Python stacks beside a timeline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cache

from gpudiag.library.sql_check import canonical_names, strip_comments

_WORD = re.compile(r"\w+")


class EmptyViews:
    """Views that were empty, by the rows of what they read; good for one set of views and settings."""

    def __init__(self, stored: Mapping[str, str], others: Mapping[str, str]) -> None:
        """Take the texts of stored views, and of all other views and macros, by name."""
        texts = {name: words(text) for name, text in [*others.items(), *stored.items()]}
        ends = canonical_names() | stored.keys()
        self._reads = {name: sorted(_reached(texts[name], texts, ends)) for name in stored}
        self._empty: set[int] = set()

    def key(self, view: str, content: Mapping[str, int]) -> int:
        """Return what stands for a stored view on these rows.

        content: a hash for each table and each stored view that is not empty.
        """
        return hash((view, *((name, content[name]) for name in self._reads[view] if name in content)))

    def is_empty(self, key: int) -> bool:
        """Return whether the view of that key was empty."""
        return key in self._empty

    def note_empty(self, key: int) -> None:
        """Remember that the view of that key was empty."""
        self._empty.add(key)


def _reached(names: Set[str], texts: Mapping[str, Set[str]], ends: Set[str]) -> set[str]:
    """Return the tables and stored views that a text names, itself or through macros and other views."""
    reached: set[str] = set()
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += texts.get(name, ()) if name not in ends else ()
    return reached & ends


@cache
def words(text: str) -> frozenset[str]:
    """Return the words of an SQL text in lower case, without its comments: what it reads is among them."""
    return frozenset(_WORD.findall(strip_comments(text).lower()))
