"""Summary of a rank: its collectives, and its own work between them. A few hundred kilobytes, whatever its capture has.

A summary travels between processes and lies in the cache as bytes: a line of JSON, then the arrays one after another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
FORMAT = 1
ARRAYS = (
    "channel", "sequence", "operation", "bytes", "ranks", "start", "end", "exposed", "compute", "copy", "idle",
)  # fmt: skip
"""Columns of the collectives in time order, all of 64 bits; unknown numbers are -1.

compute, copy, idle: the GPU's time from the start of the collective before until this one's, computing, only copying,
and with nothing to do; the rest it was alone with collectives. exposed: time in the collective in which nothing was
computed. All times in ns.
"""


@dataclass(frozen=True, slots=True)
class RankSummary:
    """The facts that a job needs of one rank.

    rank: its number, when known; began: the moment that its clock counts from, in ns since 1970, when known;
    device: the CUDA number of its GPU; content: what is equal only in two copies of one recording; groups: the
    communicators' names by channel, where the capture has them; kernels: time of each kernel over the later part of
    the capture, by short name (ns); collectives: as `ARRAYS` says.
    """

    file: str
    pid: int
    rank: int | None
    host: str | None
    device: int | None
    gpu: str | None
    began: int | None
    content: str
    groups: Mapping[int, str]
    operations: tuple[str, ...]
    kernels: Mapping[str, int]
    kernels_from: int
    collectives: Mapping[str, Ints]

    @property
    def n(self) -> int:
        """The number of collectives that it ran."""
        return len(self.collectives["start"])


def packed(summaries: tuple[RankSummary, ...]) -> bytes:
    """The summaries of one file as bytes."""
    heads, bodies = [], []
    for one in summaries:
        head = {field.name: getattr(one, field.name) for field in fields(one) if field.name != "collectives"}
        heads.append({**head, "groups": list(one.groups.items()), "kernels": dict(one.kernels), "n": one.n})
        bodies += [one.collectives[name].astype("<i8").tobytes() for name in ARRAYS]
    return json.dumps({"format": FORMAT, "ranks": heads}).encode() + b"\n" + b"".join(bodies)


def unpacked(content: bytes) -> tuple[RankSummary, ...]:
    """The summaries that `packed` wrote. Raises ValueError for anything else."""
    line, _, body = content.partition(b"\n")
    head = json.loads(line)
    if head.get("format") != FORMAT or len(body) != sum(8 * len(ARRAYS) * one["n"] for one in head["ranks"]):
        raise ValueError
    found, at = [], 0
    for one in head["ranks"]:
        n = one.pop("n")
        columns = np.frombuffer(body, "<i8", n * len(ARRAYS), at).reshape(len(ARRAYS), n)
        at += columns.nbytes
        one |= {"groups": dict(one["groups"]), "operations": tuple(one["operations"])}
        found.append(RankSummary(**one, collectives=dict(zip(ARRAYS, columns, strict=True))))
    return tuple(found)
