"""Units as Nsight Compute prints them, and the power of ten that leads to base units.

Base units are byte, ns, hertz (cycle/second), percent (0 to 100) and plain counts. The prefixes are
decimal: ncu's Kbyte is 1000 bytes. Every factor is a power of ten, so an exponent describes a unit.
"""

from __future__ import annotations

import re

_PREFIXES = {"K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_TIMES = {
    "ps": -3, "psecond": -3,
    "ns": 0, "nsecond": 0,
    "us": 3, "usecond": 3,
    "ms": 6, "msecond": 6,
    "s": 9, "second": 9, "sec": 9,
}  # fmt: skip
_PREFIXED = re.compile(r"^([KMGTP])(?:bytes?|B|bits?|[hH]z|cycle|inst|sector|request|warp|thread)$")


def exponent(unit: str) -> int:
    """The power of ten from `unit` to its base unit; 0 for counts, percentages and units without a scale.

    `Kbyte` → 3, `msecond` → 6 (to ns), `cycle/nsecond` → 9 (to hertz), `Gbyte/s` → 9, `register/thread` → 0.
    """
    above, _, below = unit.strip().partition("/")
    if above in _TIMES:
        power = _TIMES[above]
    else:
        prefixed = _PREFIXED.match(above)
        power = _PREFIXES[prefixed.group(1)] if prefixed else 0
    if below in _TIMES:  # a rate: per second
        power += 9 - _TIMES[below]
    return power
