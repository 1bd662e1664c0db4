"""Numbers and traced names as sentences write them: times, sizes, shares, counts, code spans."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_NAME = 200  # characters: demangled template instances run to kilobytes, and nobody reads them


_TOOLS = ("Nsight", "Python", "Linux", "Windows")  # with which a sentence may begin


# Control characters could drive a terminal, bidirectional and invisible ones could disguise a name.
_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]+"
)


def clean(text: str) -> str:
    """`text` on one line, without control, bidirectional or invisible characters, shortened in its middle."""
    text = _UNSAFE.sub(" ", text).strip()
    if len(text) > MAX_NAME:
        text = f"{text[: MAX_NAME * 3 // 4]}…{text[-MAX_NAME // 4 :]}"
    return text


def code(value: object) -> str:
    """A Markdown code span that holds in tables too: a backtick or a pipe would end it, so both are replaced."""
    if value is None:
        return "unknown"
    text = clean(str(value)).replace("`", "'").replace("|", "¦")
    return f"`{text}`" if text else "(unnamed)"


def dur(ns: float | None) -> str:
    """Nanoseconds in the fitting unit, three significant digits: `1.07 ms`."""
    if ns is None:
        return "unknown"
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if abs(ns) < 999.5 * size:
            return f"{ns:.0f} ns" if unit == "ns" else f"{_three(ns / size)} {unit}"
    return f"{_three(ns / 1e9)} s"


def byte_size(count: float | None) -> str:
    """Bytes in binary units: `512 B`, `4.0 KiB`, `128 MiB`."""
    if count is None:
        return "unknown"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1023.5:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 99.95 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def pct(share: float | None) -> str:
    """A share of 1 in percent: `72 %`, `3.4 %`, `< 0.1 %`. Only the whole is `100 %`, what comes near is `99.7 %`."""
    if share is None:
        return "unknown"
    value = share * 100
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.5 <= value < 100:
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def num(value: float | None) -> str:
    """A count or a figure, at most two digits below ten: `12,345`, `24`, `7.8`, `0.35`."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 9.95 else f"{value:.2g}"


def base_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def plural(count: float | Sequence[object] | None, one: str, many: str | None = None) -> str:
    """A count with its noun: `{{ places|length|plural("place") }}` → `3 places`."""
    amount = len(count) if isinstance(count, Sequence) else count
    written = num(amount)  # 1.02 is written as 1
    return f"{written} {one if written == '1' else many or one + 's'}"


def times(count: float | None) -> str:
    """The number of times, in words: `{{ total.frees_per_iteration|times }}` → `once` or `3 times`."""
    written = plural(count, "time")
    return "once" if written == "1 time" else written


def clause(text: str) -> str:
    """A sentence as the end of another one: `because not all events were collected`. Names keep their capitals."""
    text = text.strip().rstrip(".")
    first, _, rest = text.partition(" ")
    name = not first[1:].islower() or rest[:1].isupper() or first in _TOOLS
    return text if name else text[:1].lower() + text[1:]


def often(value: str | None) -> str:
    """In how many iterations, as the macro `how_often` says it: ` in every iteration`; nothing where none repeats."""
    words = {"every": " in every iteration", "most": " in most iterations", "some": " in some iterations"}
    return words.get(value or "", "")


def _three(value: float) -> str:
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"
