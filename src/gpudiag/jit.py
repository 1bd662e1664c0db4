"""Compiling with numba. The code is kept on disk only in a folder that nobody else can write to: it is run unseen."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.dispatcher import Dispatcher

from gpudiag.cache import place

_FOLDER = "compiled"
_DAMAGED = (
    OSError, EOFError, pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, ImportError,
    RuntimeError,
)  # fmt: skip
"""What reading half a file of numba's raises."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled; its code is kept where that is safe, else compiled again in each process."""
    made = numba.njit(nogil=True)(function)
    folder = next(filter(place.ours, _folders(Path(function.__code__.co_filename))), None)
    if folder and isinstance(made, Dispatcher):  # it is none where NUMBA_DISABLE_JIT is set
        with suppress(RuntimeError, OSError):  # the folder cannot be written to
            made._cache = _Kept(function, folder)  # type: ignore[attr-defined]
    return made


def _folders(module: Path) -> Iterator[Path]:
    """Return the folders for compiled code: the user's choice; else beside the module, or in the user's cache."""
    if stated := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(stated)
        return
    yield module.parent / "__pycache__"
    with suppress(place.Unkept):
        yield place.private(_FOLDER)


class _Kept(caching.FunctionCache):
    """Code compiled earlier. A cache that is full, damaged or gone is no reason to fail: the code is compiled again."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        config: Any = numba.config
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            super().__init__(function)  # type: ignore[no-untyped-call]
        finally:
            config.CACHE_DIR = before

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            if place.ours(Path(self.cache_path)):
                return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except _DAMAGED:
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if place.ours(Path(self.cache_path)):
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError:  # the disk is full all the same, or there is a quota
            self.disable()  # type: ignore[no-untyped-call]
