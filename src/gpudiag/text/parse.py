"""Values as people write them: sizes, times and shares with their units, counts, days."""

from __future__ import annotations

import math
import re
from datetime import date, datetime

from gpudiag.errors import GpudiagError

_SIZE = re.compile(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*([KMGT]?)(I?)B?\s*", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def size(text: str) -> int | None:
    """20GB is 20,000,000,000, 1GiB is 1,073,741,824; None where it is no size."""
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWERS[match[2].upper()])


UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
LONGEST = 24 * 3600 * UNITS["s"]
"""No iteration takes longer than a day: a time above is a slip of the unit."""


def duration(text: str) -> float | None:
    """A number and a unit in ns; None where it is not that."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ns|us|µs|ms|s)", text, re.ASCII)
    return float(match[1]) * UNITS[match[2]] if match else None


def nanoseconds(text: str) -> float:
    """`3.57ms` is 3,570,000. Raises GpudiagError where there is no number, no unit, or more than a day."""
    time = duration(text)
    if not time:
        raise GpudiagError(f"{text!r} is not like 3.57ms or decode_token=3.57ms (ns, us, ms or s).")
    if time > LONGEST:
        raise GpudiagError(f"{text!r} is longer than a day: is the unit right?")
    return time


TIME = r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s)$"
PERCENT = r"^[0-9]+(\.[0-9]+)? ?%$"


def time_ms(value: object) -> float:
    """`"4.2 ms"` in milliseconds. Raises ValueError with what is wanted instead."""
    if _is_number(value):
        raise ValueError(f'lacks its unit: write "{shown(value)} ms", or ns, us, s')
    if not isinstance(value, str) or not re.fullmatch(TIME, value):
        raise ValueError(f'is {shown(value)}, no time such as "4.2 ms" (ns, us, ms or s)')
    try:
        return nanoseconds(value) / UNITS["ms"]
    except GpudiagError:
        raise ValueError(f"is {shown(value)}: an iteration takes more than nothing and less than a day") from None


def share(value: object) -> float:
    """`"15 %"` or 0.15 as a part of 1. Raises ValueError with what is wanted instead."""
    if isinstance(value, str) and re.fullmatch(PERCENT, value):
        part = float(value.rstrip("% ")) / 100
    elif _is_number(value):
        part = float(value)  # type: ignore[arg-type]
    else:
        raise ValueError(f'is {shown(value)}, no share such as "15 %" or 0.15')
    if not 0 <= part <= 1:
        hint = f': write "{value} %"' if _is_number(value) and 1 < part <= 100 else ""
        raise ValueError(f"is {shown(value)}, but a share is at least 0 and at most 1 (100 %){hint}")
    return part


def count(value: object) -> float:
    """A number of things, at least 0. Raises ValueError with what is wanted instead."""
    if not _is_number(value) or not 0 <= float(value) < math.inf:  # type: ignore[arg-type]
        raise ValueError(f"is {shown(value)}, no count such as 420")
    return float(value)  # type: ignore[arg-type]


def day(value: object) -> date:
    """`2027-03-31`, as TOML's own date or as text. Raises ValueError with what is wanted instead."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError(f"is {shown(value)}, no day such as 2027-03-31")
    return value


def shown(value: object) -> str:
    """The value as it was written, near enough, short enough for a sentence."""
    try:
        text = str(value) if isinstance(value, date) else repr(value)
    except ValueError:  # Python prints no number of thousands of digits
        return "a number with too many digits" if isinstance(value, int) else "a value with too many digits"
    return text if len(text) <= 40 else f"{text[:39]}…"


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
