"""Values that nobody expects where a number, a time, a name or a text should stand."""

from __future__ import annotations

from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 255, 65_536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**32 + 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63),
    4_000_000_000_000_000_000, 10**15, -(10**15), 0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("-inf"),
)  # fmt: skip
"""`NaN` is not among them: SQLite stores it as NULL."""

TEXTS = (
    "", " ", "0", "-1", "12", "1e999", "nan", "NULL", "True", "0x10", "9" * 40, "twelve", "1,234.5", "1.234,5",
    "1\u202f234,5", "\u0661\u0662", "a\x00b", "\x00", "\x1b]0;x\x07\x1b[31m", "line\nbreak", "cr\rlf\r\n", "\ufeff",
    "\u202egnp.exe", "\ud7ff\ue000", "\U0001f600" * 3, "<script>alert(1)</script>", "<!-- x", "| a | b |", "`` ` ```",
    "](http://x.y)", "![x](javascript:1)", "::error file=a::b", "%0A::x", "{{ 7*7 }}", "{% raw %}", "$(id)",
    "'; drop table x; --", '"', "'", "\\", "../../../../etc/passwd", "/dev/zero", "C:\\x\\y", "=1+1", "@x", "a" * 300,
    "step_0", "step 1", "iteration", "cudaLaunchKernel_v7000", "cuKernelGetName",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "#" * 70, "void f<" + "a<" * 200 + ">" * 200 + ">(int)",
    "(" * 300, "<" * 300, "a::" * 200, "\t", "[", "{", "file.py:0", "\u2028x",
)  # fmt: skip
"""Also what readers and views look for: numbers in words and of other languages, markup of every format, names."""

HUGE = 1 << 20
BYTES = (
    b"",
    b"\x00",
    b"\xff",
    b"\xff\xfe\x00",
    b"\xed\xa0\x80",
    b"\xc3\x28",
    b"caf\xe9",
    bytes(range(256)),
    b"\x00" * 9,
)


def number(random: Random) -> Any:
    kind = random.random()
    if kind < 0.7:
        return random.choice(NUMBERS)
    return random.getrandbits(random.choice((3, 8, 16, 31, 40, 62))) * random.choice((1, 1, 1, -1))


def text(random: Random) -> str:
    if random.random() < 0.04:
        return random.choice(("A", "\u00e9", "<b>", "f(")) * (HUGE // 4)
    if random.random() < 0.2:
        return "".join(chr(random.choice((random.randrange(32, 127), random.randrange(0x2100)))) for _ in range(20))
    return random.choice(TEXTS)


def value(random: Random) -> Any:
    """Anything that a database can hold."""
    kind = random.random()
    if kind < 0.2:
        return None
    if kind < 0.65:
        return number(random)
    if kind < 0.9:
        return text(random)
    return random.choice(BYTES) if kind < 0.99 else b"\x80" * HUGE
