"""A private folder for what one run writes down, which goes with the run: also when that is killed."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.lockfile import held, left_behind

# A lock says nothing of processes on other computers, which may share the disk.
PREFIX = f"gpudiag-{zlib.crc32(os.uname().nodename.encode()):08x}-"
LOCK = ".lock"
_TRIES = 100
_in_use: set[Path] = set()


@contextmanager
def work_folder() -> Iterator[Path]:
    """The folder, where TMPDIR says; those that killed runs left there are removed first. Raises GpudiagError."""
    with ExitStack() as stack:
        try:
            root = Path(tempfile.gettempdir())
            remove_left_behind(root)
            folder = _claimed(root, stack)
            # The lock is there before the folder and after it: what a killed run leaves is known by it.
            stack.callback(_remove, folder)
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise unusable(error.strerror or str(error)) from None
        yield folder


def _claimed(root: Path, stack: ExitStack) -> Path:
    """A name with a lock of ours. Raises OSError."""
    for _ in range(_TRIES):
        folder = root / f"{PREFIX}{os.urandom(8).hex()}"
        # Noted before there is anything, until nothing is left: a signal may come at any moment.
        _in_use.add(folder)
        # Another run that looks for what was left behind may take the lock in the moment before it is locked.
        try:
            with ExitStack() as taken:
                taken.callback(_in_use.discard, folder)
                taken.enter_context(held(folder.with_name(f"{folder.name}{LOCK}")))
                stack.push(taken.pop_all())
            return folder
        except FileExistsError:
            continue
    raise FileExistsError(f"other runs took {_TRIES} names")


def unusable(reason: str) -> GpudiagError:
    """Return the message for a folder that cannot be written or read."""
    return GpudiagError(f"gpudiag's working copy cannot be kept in {_place()} ({reason}): give it room, or set TMPDIR.")


def _place() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "the folder for temporary files")


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:  # a signal to end: the rest goes all the same
        shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_all() -> None:
    """Folders of this process, which must end at once; what is still written to them is found by the next run."""
    for folder in list(_in_use):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            with suppress(OSError):
                folder.with_name(f"{folder.name}{LOCK}").unlink()


def remove_left_behind(root: Path) -> None:
    """Folders of this user on this computer whose runs were killed."""
    with os.scandir(root) as found:
        locks = [entry.path for entry in found if entry.name.startswith(PREFIX) and entry.name.endswith(LOCK)]
    for lock in map(Path, locks):
        with left_behind(lock) as gone:
            if gone:
                shutil.rmtree(lock.with_name(lock.name.removesuffix(LOCK)), ignore_errors=True)
                with suppress(OSError):
                    lock.unlink()
