"""The folders of one recording: a private one for what goes, and the one for what is kept; both go if it fails."""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpudiag.capture import guard, supervisor
from gpudiag.errors import GpudiagError

_FULL = 16_000_000
"""Fewer free bytes than this: what failed then, failed for want of room. It only chooses the sentence."""
_GUARD_S = 10.0
"""Seconds that the guard has to end once all is done."""
_PROBE = "#!/bin/sh\nexit 0\n"


@contextmanager
def workspace(output: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a private folder and the folder for the results, which is removed again where an error is raised.

    An output folder that holds something is left alone: the next free name with a number is taken.
    """
    try:
        kept = _free(output)
        kept.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise _unusable(output, error) from None
    private: Path | None = None
    try:
        private = _private(kept)
        with _guarded(private, kept):
            yield private, kept
    except OSError as error:
        shutil.rmtree(kept, ignore_errors=True)
        raise _unusable(kept, error) from None
    except BaseException:
        shutil.rmtree(kept, ignore_errors=True)
        raise
    finally:
        if private is not None:
            shutil.rmtree(private, ignore_errors=True)


@contextmanager
def private_folder(kept: Path) -> Iterator[Path]:
    """Yield a private folder beside results that are there already. Raises GpudiagError."""
    private = _private(kept)
    try:
        with _guarded(private):
            yield private
    except OSError as error:
        raise _unusable(kept, error) from None
    finally:
        shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _guarded(*folders: Path) -> Iterator[None]:
    """Have the folders removed, and what was started ended, should this process be killed. Without a Python that can
    be started it goes on unguarded.
    """
    source = pkgutil.get_data("gpudiag.capture", "guard.py")
    assert source is not None
    absolute = [os.path.abspath(folder) for folder in folders]
    words = [sys.executable, "-I", "-S", "-c", source.decode(), supervisor.OWN_MARK, *absolute]
    watching: subprocess.Popen[bytes] | None = None
    with suppress(OSError):
        watching = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield
    finally:
        if watching is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                watching.communicate(guard.DONE, _GUARD_S)


def _free(output: Path) -> Path:
    number = 1
    path = output
    while os.path.lexists(path):
        number += 1
        path = output.with_name(f"{output.name}-{number}")
    return path


def _private(kept: Path) -> Path:
    """Return a folder of our own where programs may be executed: Nsight Systems unpacks some there."""
    places = [Path(tempfile.gettempdir()), kept, Path.home()]
    for place in places:
        try:
            folder = Path(tempfile.mkdtemp(prefix="gpudiag-capture-", dir=place))
        except OSError:
            continue
        if _executes(folder):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
    raise GpudiagError(
        f"Nsight Systems needs a folder in which programs may be executed, and {places[0]} is mounted without that;"
        " set TMPDIR to another one."
    )


def _executes(folder: Path) -> bool:
    probe = folder / "probe"
    try:
        probe.write_text(_PROBE)
        probe.chmod(0o700)
        return subprocess.run([probe], check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        with suppress(OSError):
            probe.unlink()


def _unusable(folder: Path, error: OSError) -> GpudiagError:
    reason = error.strerror or str(error)
    return GpudiagError(
        f"{folder}: the recording cannot be kept there ({reason}); give another place with --output-dir."
    )


def size(folder: Path) -> int:
    """Return the bytes in a folder, whatever comes and goes in it meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def room(folder: Path) -> int:
    """Return the bytes that are free there."""
    return shutil.disk_usage(folder).free


def is_full(folder: Path) -> bool:
    """Return whether next to nothing is free there."""
    return room(folder) < _FULL
