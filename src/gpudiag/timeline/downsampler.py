"""Intervals of the store as slices: few are drawn one by one, many are drawn together, so that a picture stays small.

A relation here is SQL that gives lane, kind, name (references name), start and end, in ns from the timeline's start.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from gpudiag.text.format import clean
from gpudiag.timeline.model import Name, Slice

Connection = duckdb.DuckDBPyConnection
_LONGEST_NAME = 300


@dataclass(slots=True)
class Downsampler:
    """A timeline in the making: its time, how many slices it may hold, and the names used so far."""

    con: Connection
    begin: int
    end: int
    slices: int
    names: dict[Any, int] = field(default_factory=dict)
    merged: int = 0  # how many intervals were drawn together
    longest_merged: int = 0  # and what none of them exceeds (ns)

    @property
    def ns(self) -> int:
        return max(1, self.end - self.begin)

    def lanes(self, relation: str, values: Mapping[str, Any], most: int | None = None) -> dict[str, tuple[Slice, ...]]:
        """The relation's slices by lane, in order of time. most: how many it may hold, where that is fewer."""
        slices = self.slices if most is None else max(1, most)
        given = {"begin": self.begin, "end": self.end, **values}
        wanted = set(re.findall(r"\$(\w+)", relation))
        used = {name: value for name, value in given.items() if name in wanted}
        sizes = self.con.execute(f"select lane, count(*) from ({relation}) group by lane", used).fetchall()
        total, least = sum(size for _, size in sizes), 0
        if total > slices:
            # A lane holds about two slices a bucket: one that fills it, or the short ones together, a slice a kind.
            least = -(-self.ns * 2 * len(sizes) // slices)
        found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for lane, *slice_ in self.con.execute(_MERGED.format(relation=relation), {**used, "least": least}).fetchall():
            found[lane].append(tuple(slice_))
            if slice_[-1] > 1:
                self.merged += slice_[-1]
                self.longest_merged = max(self.longest_merged, least)
        return {lane: tuple(self._placed(slices)) for lane, slices in found.items()}

    def _placed(self, slices: Sequence[tuple[Any, ...]]) -> Iterable[Slice]:
        """Kinds that share a bucket stand one behind the other, each as long as it took."""
        reached, last = 0, None
        for bucket, start, span, ns, kind, name, count in slices:
            begin = max(start, reached) if bucket is not None and bucket == last else start
            reached, last = begin + ns, bucket
            yield Slice(int(begin), int(min(ns, span)), kind, self.name(name), count)

    def name(self, key: Any) -> int:
        """The position of a name of the store, or of a text."""
        return -1 if key is None else self.names.setdefault(key, len(self.names))

    def named(self) -> tuple[Name, ...]:
        """The names in order of their positions."""
        ids = [key for key in self.names if isinstance(key, int)]
        known: dict[Any, Name] = {
            number: Name(_cut(short or text), _cut(text))
            for number, text, short in self.con.execute(
                "select id, text, short from name where id in (select unnest(?::bigint[]))", [ids]
            ).fetchall()
        }
        return tuple(known.get(key) or Name(str(key), str(key)) for key in self.names)


# Buckets are numbered over all lanes alike; what is as long as one stands alone.
_MERGED = """
    with slice_ as (
        select lane, kind, name, start, "end" - start as ns,
               case when "end" - start < $least then start // $least end as bucket
        from ({relation}) where "end" > start
    )
    select lane, bucket, start, ns as span, ns, kind, name, 1 as n from slice_ where bucket is null
    union all
    select lane, bucket, min(start), max(start + ns) - min(start), cast(sum(ns) as bigint), kind,
           arg_max(name, (ns, name)), count(*)
    from slice_ where bucket is not null group by lane, kind, bucket
    order by lane, start, kind
"""


def _cut(text: str | None) -> str:
    return clean(text or "")[:_LONGEST_NAME]
