"""How much memory a run may take, and what of it the database gets: it is what grows with the captures."""

from __future__ import annotations

from pathlib import Path

from gpudiag import bytesize
from gpudiag.errors import GpudiagError

APART = 450_000_000
"""Bytes that a run takes beside what the database holds: Python, compiled code, batches on their way into it."""
LEAST = 250_000_000
"""Bytes below which the database cannot hold what one query needs at a time, even of a small capture."""
_USUAL = 350_000_000
_GROWTH = 0.01
"""What the database gets when nobody said otherwise: enough for eight million events, and a little more the larger the
captures are. More makes nothing faster: what does not fit goes to the disk, and is read once."""


def parse(text: str) -> int:
    """Bytes of a size such as 2GB or 800MiB. Raises GpudiagError."""
    wanted = bytesize.parse(text)
    if wanted is None:
        raise GpudiagError(f"{text[:60]!r} is no amount of memory: write it as 2GB or 800MB.")
    if wanted < APART + LEAST:
        raise GpudiagError(f"{text[:60]} is too little: gpudiag needs {(APART + LEAST) // 10**6} MB.")
    return wanted


def too_little(path: Path, limit: int | None) -> str:
    """The sentence for captures that do not fit."""
    allowed = f"the {limit / 1e9:.1f} GB allowed" if limit else "the memory that gpudiag takes by itself"
    more = f"--memory-limit {max(2, 2 * (limit or 0) // 10**9)}GB"
    return f"{path}: {allowed} cannot hold what one step needs; give it more, such as {more}."


def database_bytes(limit: int | None, read: int) -> int:
    """The database's part of a limit on the whole process; without one its usual part, for so many bytes read."""
    return limit - APART if limit else int(_USUAL + _GROWTH * read)
