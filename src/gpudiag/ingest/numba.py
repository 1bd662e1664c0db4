"""Names of Numba's kernels and the tags in them: `relax[abi:v3,cw51…](Array<float, 1>)`.

Each compilation of a process has its own number, `v3` here; a function that is compiled again gets another one.
"""

from __future__ import annotations

import re

_COMPILATION = re.compile(r"\[abi:v[0-9]+")


def untagged(name: str) -> str:
    """Return a kernel's base name without the tags that tell its specialisations apart."""
    return name.partition("[abi:")[0] or name


def as_first_compiled(name: str) -> str:
    """Return a kernel's name as its first compilation bears it.

    One function is one kernel, however often and in whatever order a run compiles it: else a loop that compiles its
    kernel anew would never launch the same one twice.
    """
    return _COMPILATION.sub("[abi:v1", name, count=1)
