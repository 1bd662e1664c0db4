"""Nsight Systems reports (.nsys-rep): exported by the user's own `nsys`, because the format is private."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gpudiag.errors import GpudiagError

TIMEOUT_S = 1800.0
"""A report of 10 GB exports in a few minutes; a hung tool must not hang us."""


def export(path: Path, workdir: Path, timeout_s: float = TIMEOUT_S) -> Path:
    """Export a report into `workdir`: a Parquet folder, or an SQLite file when this nsys knows no Parquet.

    Raises GpudiagError when nsys is missing, too old for the report, or does not finish within `timeout_s` seconds.
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        raise GpudiagError(
            f"{path}: reading a report needs `nsys`, which is not on the PATH; where it is, run"
            f" `nsys export --type=sqlite --include-json=true --output={path.stem[:60]}.sqlite {path.name}`"
            " and give the .sqlite file."
        )
    message = ""
    for kind, target in (("parquetdir", workdir / "export"), ("sqlite", workdir / "export.sqlite")):
        message = _run(nsys, kind, target, path, timeout_s)
        if target.is_dir() or target.is_file():
            return target
        if "parquet" not in message.lower() and "type" not in message.lower():
            break
    raise GpudiagError(f"{path}: `nsys export` failed ({message}); try the nsys version that made the report.")


def _run(nsys: str, kind: str, target: Path, path: Path, timeout_s: float) -> str:
    """Run one export; gives what nsys said last, for when there is no target."""
    command = [
        nsys, "export", f"--type={kind}", "--include-json=true", "--force-overwrite=true", f"--output={target}",
        str(path.resolve()),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            cwd=target.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GpudiagError(
            f"{path}: `nsys export` did not finish within {timeout_s:.0f} s; export it yourself."
        ) from None
    except OSError as error:
        raise GpudiagError(f"{path}: `nsys` cannot be run ({error.strerror}).") from None
    said = (done.stderr or done.stdout).decode("utf-8", "replace").split("\n")
    lines = [line.strip() for line in said if line.strip()]
    return lines[-1][:300] if lines else f"exit code {done.returncode}"
