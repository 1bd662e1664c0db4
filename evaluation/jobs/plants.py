"""Causes planted in a generated job: which ranks take how much longer, in which iterations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

PER_HOST = 8
KINDS = ("balanced", "slow rank", "busy host process", "several slow ranks", "slow host", "slow link", "degrading rank",
         "pauses")  # fmt: skip
LEAST, MOST = 0.02, 0.5
"""How much longer an iteration gets by what is planted, as a part of it."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A cause: its kind, the ranks or the host it is in, and by how much an iteration gets longer by it (a share)."""

    kind: str
    ranks: tuple[int, ...] = ()
    host: int | None = None
    strength: float = 0.0
    strengths: tuple[float, ...] = field(default=())

    @property
    def code_words(self) -> str:
        """The rule that has to name it."""
        return {
            "balanced": "", "slow rank": "slow-ranks-of-job", "busy host process": "slow-ranks-of-job",
            "several slow ranks": "slow-ranks-of-job", "slow host": "slow-host-of-job", "slow link": "slow-link-of-job",
            "degrading rank": "rank-degrades", "pauses": "pauses-of-one-rank",
        }[self.kind]  # fmt: skip


def plant(kind: str, ranks: int, random: np.random.Generator) -> Plant:
    """A cause of a kind, where and how strong is drawn."""
    strength = float(np.exp(random.uniform(np.log(LEAST), np.log(MOST))))
    if kind == "balanced":
        return Plant(kind)
    if kind in ("slow host", "slow link"):
        return Plant(kind, host=int(random.integers(max(1, ranks // host_size(ranks)))), strength=strength)
    count = int(random.integers(2, max(3, min(6, ranks // 4 + 1)))) if kind == "several slow ranks" else 1
    chosen = _chosen(ranks, count, random)
    each = tuple(float(np.clip(strength * random.uniform(0.5, 1.0), LEAST, MOST)) for _ in chosen)
    each = (strength, *each[1:])
    return Plant(kind, ranks=chosen, strength=strength, strengths=each)


def _chosen(ranks: int, count: int, random: np.random.Generator) -> tuple[int, ...]:
    """Some of the ranks, on hosts that each have others, too: ranks that fill a host would be a slow host."""
    while True:
        chosen = tuple(sorted(int(rank) for rank in random.choice(ranks, count, replace=False)))
        hosts = [rank // host_size(ranks) for rank in chosen]
        if max(map(hosts.count, hosts)) < host_size(ranks):
            return chosen


def host_size(ranks: int) -> int:
    """Ranks on one host: eight, of small jobs two, so that there are several hosts."""
    return PER_HOST if ranks >= 4 * PER_HOST else 2


def extra(
    cause: Plant, ranks: int, steps: int, iteration_ns: float, random: np.random.Generator
) -> NDArray[np.float64]:
    """The time that each rank works longer before each collective, ranks × collectives (ns)."""
    more = np.zeros((ranks, steps))
    if cause.kind in ("slow rank", "busy host process", "several slow ranks"):
        for rank, strength in zip(cause.ranks, cause.strengths, strict=True):
            more[rank] = strength * iteration_ns
    elif cause.kind == "slow host":
        size = host_size(ranks)
        assert cause.host is not None
        more[cause.host * size : (cause.host + 1) * size] = cause.strength * iteration_ns
    elif cause.kind == "degrading rank":
        more[cause.ranks[0]] = np.linspace(0, 2 * cause.strength * iteration_ns, steps)
    elif cause.kind == "pauses":
        often = max(4, round(1 / 0.15))
        at = np.arange(int(random.integers(often)), steps, often)
        more[cause.ranks[0], at] = cause.strength * iteration_ns * steps / max(1, len(at))
    return more
