"""Compressed inputs, decompressed by stream into the private work folder."""

from __future__ import annotations

import gzip
import importlib
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from gpudiag.errors import GpudiagError

LIMIT = 64 * 1024**3
"""Most bytes a compressed input may unfold to: far above any export seen, far below what fills a server's disk."""

_CHUNK = 1 << 20


def unpack(
    path: Path, compression: str, workdir: Path, limit: int = LIMIT, judge: Callable[[bytes], int] | None = None
) -> Path:
    """Decompress into `workdir` and give the new file.

    judge: sees the first megabyte before anything is written; raises GpudiagError for what is not worth unpacking, or
    gives the most bytes that this kind of content may unfold to, if fewer than `limit`.
    Raises GpudiagError when the data is damaged, unfolds to too many bytes, or needs a newer Python.
    """
    target = workdir / f"unpacked-{path.stem}"
    written = 0
    try:
        with _opened(path, compression) as source, target.open("wb") as sink:
            while chunk := source.read(_CHUNK):
                if judge and not written:
                    limit = min(limit, judge(chunk))
                written += len(chunk)
                if written > limit:
                    target.unlink()
                    raise GpudiagError(
                        f"{path}: unfolds to more than {limit // 1024**2:,} MiB, the most that is read of such a file;"
                        " give a smaller capture."
                    )
                sink.write(chunk)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise GpudiagError(f"{path}: the compressed data is damaged or cut short ({error}); copy it again.") from None
    except OSError as error:
        raise GpudiagError(f"{path}: cannot be decompressed ({error.strerror or error}).") from None
    return target


def _opened(path: Path, compression: str) -> IO[bytes]:
    if compression == "gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if compression == "xz":
        return cast(IO[bytes], lzma.open(path, "rb"))
    try:
        zstd = importlib.import_module("compression.zstd")  # Python 3.14
    except ModuleNotFoundError:
        raise GpudiagError(f"{path}: run `unzstd {path.name}` first; this Python cannot read zstd.") from None
    return cast(IO[bytes], zstd.open(path, "rb"))
