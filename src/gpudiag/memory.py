"""Memory limits of a run, and the database's part of it, which grows with the captures."""

from __future__ import annotations

import resource
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.text import parse

APART = 450_000_000
"""Bytes that a run takes beside what the database holds: Python, compiled code, batches on their way into it."""
LEAST = 250_000_000
"""Bytes below which the database cannot hold what one query needs at a time, even of a small capture."""
LEAST_ADDRESSES = 2_000_000_000
"""Bytes of addresses that a run takes, most of which it never fills: libraries that find none left end the process."""
_USUAL = 350_000_000
_GROWTH = 0.01
"""What the database gets when nobody said otherwise: enough for eight million events, and a little more the larger the
captures are. More makes nothing faster: what does not fit goes to the disk, and is read once."""


def limit(text: str) -> int:
    """Bytes of a size such as 2GB or 800MiB. Raises GpudiagError."""
    wanted = parse.size(text)
    if wanted is None:
        raise GpudiagError(f"{text[:60]!r} is no amount of memory: write it as 2GB or 800MB.")
    if wanted < APART + LEAST:
        raise GpudiagError(f"{text[:60]} is too little: gpudiag needs {(APART + LEAST) // 10**6} MB.")
    return wanted


def refuse_narrow() -> None:
    """Refuse to start where the system allows too few addresses (`ulimit -v`). Raises GpudiagError."""
    allowed = _addresses()
    if allowed is not None and allowed < LEAST_ADDRESSES:
        raise GpudiagError(
            f"the limit on this process's memory, `ulimit -v {allowed // 1024}`, is too low to start: give it at least"
            f" `ulimit -v {LEAST_ADDRESSES // 1000}`."
        )


def _addresses() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def exhausted() -> str:
    """The sentence for a run to which the system gives no more memory."""
    allowed = _addresses()
    why = f"`ulimit -v {allowed // 1024}` allows no more" if allowed is not None else "the system has no more"
    return f"there is not enough memory ({why}): give it more, or read a part of the capture with --range."


def too_little(path: Path, limit: int | None) -> str:
    """The sentence for captures that do not fit."""
    if _addresses() is not None and limit is None:
        return f"{path}: {exhausted()}"
    allowed = f"the {limit / 1e9:.1f} GB allowed" if limit else "the memory that gpudiag takes by itself"
    more = f"--memory-limit {max(2, 2 * (limit or 0) // 10**9)}GB"
    return f"{path}: {allowed} cannot hold what one step needs; give it more, such as {more}."


def database_bytes(limit: int | None, read: int) -> int:
    """The database's part of a limit on the whole process; without one its usual part, for so many bytes read."""
    return limit - APART if limit else int(_USUAL + _GROWTH * read)
