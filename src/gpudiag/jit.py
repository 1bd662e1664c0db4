"""Compiling with numba, with the code kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled; cached beside its module or in the user's cache, else compiled again in each process."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither folder can be written
        return numba.njit(nogil=True)(function)
