"""Damage that knows nothing of a format, or only where its bytes matter most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

INTERESTING = (
    b"\x00", b"\xff", b"\x7f", b"\x80", b"\x01", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00", b"\xff" * 9, b"\x81" * 9, b"\x00" * 64, b"\n", b"\r", b'"', b",", b";", b"{", b"[",
    b"\xef\xbb\xbf", b"\xff\xfe", b"PAR1", b"\x00\x01",
)  # fmt: skip

Damage = Callable[[bytearray, Random, bytes], None]


def _place(content: bytearray, random: Random) -> int:
    """Anywhere; more often near the start, the end, or where a page of 4096 bytes begins."""
    size = len(content)
    kind = random.random()
    if kind < 0.25:
        at = random.randrange(min(size, 120) or 1)
    elif kind < 0.4:
        at = size - 1 - random.randrange(min(size, 200) or 1)
    elif kind < 0.65:
        at = random.randrange(size // 4096 + 1) * 4096 + random.randrange(24)
    else:
        at = random.randrange(size or 1)
    return max(0, min(at, size - 1))


def flip(content: bytearray, random: Random, _: bytes) -> None:
    for _time in range(random.choice((1, 1, 2, 8, 64))):
        if content:
            content[_place(content, random)] ^= 1 << random.randrange(8)


def overwrite(content: bytearray, random: Random, _: bytes) -> None:
    for _time in range(random.choice((1, 1, 3, 20))):
        at = _place(content, random)
        noise = random.randbytes(random.choice((1, 2, 4, 16, 256)))
        put = random.choice(INTERESTING) if random.random() < 0.7 else noise
        content[at : at + len(put)] = put


def insert(content: bytearray, random: Random, _: bytes) -> None:
    at = _place(content, random)
    content[at:at] = random.choice(INTERESTING) * random.choice((1, 1, 5, 1000))


def delete(content: bytearray, random: Random, _: bytes) -> None:
    at = _place(content, random)
    del content[at : at + random.choice((1, 2, 16, 100, 4096, 50_000))]


def cut(content: bytearray, random: Random, _: bytes) -> None:
    near = random.choice((16, 100, 512, 5000, len(content) or 1))
    keep = random.randrange(near) if random.random() < 0.5 else len(content) - random.randrange(near)
    del content[max(0, keep) :]


def repeat(content: bytearray, random: Random, _: bytes) -> None:
    """A block once more, in its place's neighbourhood or over something else."""
    size = random.choice((1, 8, 100, 4096, 20_000))
    at, to = _place(content, random), _place(content, random)
    block = bytes(content[at : at + size]) * random.choice((1, 1, 3))
    if random.random() < 0.5:
        content[to:to] = block
    else:
        content[to : to + len(block)] = block


def swap_pages(content: bytearray, random: Random, _: bytes) -> None:
    size = random.choice((512, 4096, 4096, 65_536))
    pages = len(content) // size
    if pages > 1:
        one, other = (random.randrange(pages) * size for _ in range(2))
        content[one : one + size], content[other : other + size] = (
            content[other : other + size],
            content[one : one + size],
        )


def splice(content: bytearray, random: Random, other: bytes) -> None:
    """One file to here, another one from there."""
    at = _place(content, random)
    start = at if random.random() < 0.5 else random.randrange(len(other) or 1)
    content[at:] = other[start:]


def pages(content: bytearray, random: Random, _: bytes) -> None:
    """The header of a b-tree page, its cell pointers, or the first bytes of a cell, as SQLite lays them out."""
    number = random.randrange(len(content) // 4096 or 1)
    start = number * 4096 + (100 if number == 0 else 0)
    if start + 12 > len(content):
        return
    kind = random.randrange(4)
    if kind == 0:
        content[start] = random.choice((2, 5, 10, 13, 0, 1, 255))
    elif kind == 1:
        at = start + random.choice((1, 3, 5, 7, 8, 10))
        content[at : at + 2] = random.choice((b"\x00\x00", b"\xff\xff", b"\x00\x01", b"\x10\x00", random.randbytes(2)))
    elif kind == 2:
        at = start + 8 + 2 * random.randrange(100)
        content[at : at + 2] = random.randbytes(2)
    else:
        pointer = start + 8 + 2 * random.randrange(20)
        cell = number * 4096 + int.from_bytes(content[pointer : pointer + 2], "big")
        content[cell : cell + 1] = random.choice((b"\xff" * 9, b"\x81\x00", b"\x00", b"\x7f", random.randbytes(3)))


STEPS: Mapping[str, Damage] = {
    "flip": flip, "overwrite": overwrite, "insert": insert, "delete": delete, "cut": cut, "repeat": repeat,
    "swap-pages": swap_pages, "splice": splice, "pages": pages,
}  # fmt: skip


def damaged(name: str, content: bytes, random: Random, other: bytes) -> bytes:
    """The content after that step."""
    made = bytearray(content)
    STEPS[name](made, random, other)
    return bytes(made)
