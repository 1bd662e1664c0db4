"""A report that was saved as JSON, read again: to compare it, post it, or print it in another format."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from gpudiag.errors import GpudiagError
from gpudiag.model import Report

SUFFIX = ".json"
LARGEST = 100_000_000  # bytes; a report has some hundred thousand
_AGAIN = "Write it again: `gpudiag explain CAPTURE --format json -o report.json`."


def is_one(path: Path) -> bool:
    """Whether the file claims to be a saved report: by its name, since captures are never called so."""
    return path.suffix.lower() == SUFFIX


def read(path: Path) -> Report:
    """The report in the file; what a newer version added to it is left out. Raises GpudiagError."""
    try:
        if path.stat().st_size > LARGEST:
            raise GpudiagError(f"{path} is too large for a saved report. {_AGAIN}")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise GpudiagError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise GpudiagError(f"{path} is not JSON. {_AGAIN}") from None
    if not isinstance(content, dict) or "schema_version" not in content:
        raise GpudiagError(f"{path} is JSON, but no report of gpudiag. {_AGAIN}")
    try:
        return Report.model_validate(content, extra="ignore")
    except (ValidationError, RecursionError) as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "nesting"
        raise GpudiagError(f"{path} is a damaged report, or one of a newer gpudiag ({place}). {_AGAIN}") from None
