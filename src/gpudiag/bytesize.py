"""A number of bytes as people write it: a number and, if need be, its unit."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*([KMGT]?)(I?)B?\s*", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse(text: str) -> int | None:
    """20GB is 20,000,000,000, 1GiB is 1,073,741,824; None where it is no size."""
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWERS[match[2].upper()])
