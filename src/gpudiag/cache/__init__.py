"""Prepared stores of large captures, kept in the user's cache directory for the next run. Disposable at any time."""

from gpudiag.cache.entries import Damaged, Slot, keep, slot
from gpudiag.cache.place import Unkept

__all__ = ["Damaged", "Slot", "Unkept", "keep", "slot"]
