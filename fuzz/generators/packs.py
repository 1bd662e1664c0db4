"""Packed files: damaged inside, damaged outside, packed twice, or unfolding without end."""

from __future__ import annotations

import gzip
import lzma
from random import Random

from fuzz.generators import bytewise
from fuzz.given import Given

# One frame that unfolds to `inside`, stored as it is: enough of the format without a library for it.
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def zstd_stored(content: bytes) -> bytes:
    made = bytearray(_ZSTD_MAGIC + b"\x80" + b"\x48" + len(content).to_bytes(4, "little"))
    parts = [content[at : at + 100_000] for at in range(0, len(content), 100_000)] or [b""]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        made += ((len(part) << 3) | last).to_bytes(3, "little") + part
    return bytes(made)


def pack(given: Given, random: Random) -> None:
    """The main file packed, under a fitting name or another."""
    kind = random.choice(("gz", "gz", "xz", "xz", "zst"))
    inside = given.content
    if kind == "gz":
        given.content = gzip.compress(inside, 1, mtime=0)
    elif kind == "xz":
        given.content = lzma.compress(inside, preset=0, format=lzma.FORMAT_XZ)
    else:
        given.content = zstd_stored(inside)
    given.rename(f"{given.main}.{kind if random.random() < 0.9 else random.choice(('gz', 'xz', 'zst', 'csv', 'x'))}")


def outside(given: Given, random: Random) -> None:
    """The packed bytes damaged, cut, or with something behind them."""
    kind = random.randrange(4)
    if kind == 0:
        given.content += random.choice((b"\x00" * 100, b"rubbish", given.content, gzip.compress(b"more")))
    else:
        given.content = bytewise.damaged(
            random.choice(("flip", "overwrite", "cut", "delete", "insert")), given.content, random, b""
        )


def twice(given: Given, _: Random) -> None:
    given.content = gzip.compress(given.content, 1, mtime=0)


def bomb(given: Given, random: Random) -> None:
    """A few megabytes that unfold to gigabytes, behind the first bytes of the sample or of nothing that is known."""
    head = given.content[: random.choice((100, 4096, len(given.content)))] if random.random() < 0.8 else b""
    size = random.choice((1, 4, 40)) << 30
    if random.random() < 0.6:
        part = gzip.compress(b"\x00" * (64 << 20), 9, mtime=0)
        given.content = gzip.compress(head, 9, mtime=0) + part * (size >> 26)
        given.rename(f"{given.main}.gz")
    else:
        part = lzma.compress(b"\x00" * (256 << 20), preset=1)
        given.content = lzma.compress(head, preset=1) + part * (size >> 28)
        given.rename(f"{given.main}.xz")


STEPS = {"pack": pack, "outside": outside, "twice": twice, "bomb": bomb}
