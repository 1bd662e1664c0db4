"""Compressed inputs, decompressed by stream into the private work folder."""

from __future__ import annotations

import errno
import gzip
import importlib
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from gpudiag.errors import GpudiagError
from gpudiag.ingest.pace import Pace

LIMIT = 64 * 1024**3
"""Most bytes a compressed input may unfold to: far above any export seen, far below what fills a server's disk."""

SMALL, MOST_TIMES = 1024**3, 100
"""A report of more than SMALL bytes never unfolds to more than so many times its size: exports shrink 10 to 25 times.

Whoever packs gigabytes of zeros shrinks them a thousand times and more.
"""

_CHUNK = 1 << 20


def unpack(
    path: Path,
    compression: str,
    workdir: Path,
    limit: int = LIMIT,
    judge: Callable[[bytes], int] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Decompress into `workdir` and give the new file.

    judge: sees the first megabyte before anything is written; raises GpudiagError for what is not worth unpacking, or
    gives the most bytes that this kind of content may unfold to, if fewer than `limit`. say: hears the progress.
    Raises GpudiagError when the data is damaged, unfolds to too many bytes, or needs a newer Python.
    """
    target = workdir / f"unpacked-{path.stem}"
    written = 0
    pace = Pace(say, f"unpacking {path.name}", path.stat().st_size)
    try:
        with path.open("rb") as packed, _opened(packed, path, compression) as source, target.open("wb") as sink:
            while chunk := source.read(_CHUNK):
                if judge and not written:
                    limit = min(limit, judge(chunk))
                written += len(chunk)
                # Not only in the end: a file that unfolds to gigabytes of zeros takes long until then.
                if written > min(limit, max(SMALL, MOST_TIMES * packed.tell())):
                    target.unlink()
                    most = (written - 1) // 1024**2
                    raise GpudiagError(
                        f"{path}: unfolds to more than {most:,} MiB, the most that is unpacked of such a file;"
                        " give a smaller capture, or unpack it yourself if you trust it."
                    )
                sink.write(chunk)
                pace.reached(packed.tell(), written)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        if "Not a gzipped file" in str(error):  # it began as one
            raise GpudiagError(f"{path}: something else follows the compressed data; copy it again.") from None
        raise GpudiagError(f"{path}: the compressed data is damaged or cut short ({error}); copy it again.") from None
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise GpudiagError(
                f"{path}: no room to decompress it in {target.parent} ({reason}); set TMPDIR to a folder with more."
            ) from None
        raise GpudiagError(f"{path}: cannot be decompressed ({reason}); copy it again.") from None
    return target


def _opened(packed: IO[bytes], path: Path, compression: str) -> IO[bytes]:
    if compression == "gz":
        return cast(IO[bytes], gzip.open(packed, "rb"))
    if compression == "xz":
        return cast(IO[bytes], lzma.open(packed, "rb"))
    try:
        zstd = importlib.import_module("compression.zstd")  # Python 3.14
    except ModuleNotFoundError:
        raise GpudiagError(f"{path}: run `unzstd {path.name}` first; this Python cannot read zstd.") from None
    return cast(IO[bytes], zstd.open(packed, "rb"))
