"""Texts that many recordings have in common: fixtures/texts.xz holds them once, and packed files refer to them.

A packed file names a text by its place in the list: texts may be added at the end, none may go or move.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "texts.xz"


@cache
def common() -> tuple[str, ...]:
    """Return the texts."""
    return tuple(json.loads(lzma.decompress(FILE.read_bytes()))) if FILE.exists() else ()


@cache
def places() -> dict[str, int]:
    """Text → its place in the list."""
    return {text: place for place, text in enumerate(common())}


def add(recordings: Iterable[Iterable[str]]) -> int:
    """Add the texts that more than one of these recordings has; returns how many were new."""
    count: Counter[str] = Counter()
    for texts in recordings:
        count.update(list(dict.fromkeys(texts)))
    new = [text for text, times in count.items() if times > 1 and text not in places()]
    listed = json.dumps([*common(), *new], ensure_ascii=False, separators=(",", "\n"))
    FILE.write_bytes(lzma.compress(listed.encode(), preset=9 | lzma.PRESET_EXTREME))
    common.cache_clear()
    places.cache_clear()
    return len(new)
