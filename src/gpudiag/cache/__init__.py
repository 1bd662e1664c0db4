"""Prepared stores of large captures and finished answers, kept in the user's cache for the next run. Disposable at any
time.
"""

from gpudiag.cache.entries import Damaged, Slot, keep, slot
from gpudiag.cache.memo import Memo, memo
from gpudiag.cache.place import Unkept

__all__ = ["Damaged", "Memo", "Slot", "Unkept", "keep", "memo", "slot"]
