"""Lines of a text file in whatever encoding a shell wrote it, none of them long enough to fill the memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from gpudiag.errors import GpudiagError

LONGEST = 16_384
"""Characters of a line: all fields that nvidia-smi knows, asked for at once, take half of that."""

MOST_BYTES = 2 << 30
"""Bytes of a log: eight GPUs every tenth of a second for two weeks take less."""

_LOOKED_AT = 1024


def encoding(head: bytes) -> str | None:
    """Return the encoding of a text that begins so; None for binary data. PowerShell writes UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    seen = head[:_LOOKED_AT]
    if b"\x00" not in seen:
        return "utf-8-sig"
    if len(seen) > 1 and not any(seen[1::2]) and all(seen[0::2]):
        return "utf-16-le"  # appended to by PowerShell, which then writes no mark
    return None


def text_of(head: bytes) -> str | None:
    """Return the beginning of a text file as text; None for binary data."""
    found = encoding(head)
    return None if found is None else head[: len(head) // 2 * 2].decode(found, "replace")


def lines(file: Path, shown: Path) -> Iterator[tuple[str, bool]]:
    """Yield each line without its end, and whether it had one. Raises GpudiagError for what is no log."""
    if file.stat().st_size > MOST_BYTES:
        raise GpudiagError(
            f"{shown}: a log of nvidia-smi with more than {MOST_BYTES >> 20:,} MiB is not read; give the lines from the"
            " time of the run, with the header before them."
        )
    with file.open("rb") as opened:
        found = encoding(opened.read(_LOOKED_AT)) or "utf-8-sig"
    with file.open(encoding=found, errors="replace") as opened:
        number = 0
        while line := opened.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise GpudiagError(
                    f"{shown}: line {number:,} has more than {LONGEST:,} characters, so it is no reading of nvidia-smi;"
                    " record the log again."
                )
            yield line.rstrip("\r\n"), line.endswith("\n")
