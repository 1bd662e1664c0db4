"""Say of an iteration what can be said of it: nothing where none repeats, whole numbers where less than one is meant.

Rules write their sentences for loops. Where nothing was found that repeats, what is called an iteration is all the
recorded work, and a reader of "every iteration" looks for one. A thing that happens less than once an iteration is
counted over several: `36 copies in 37 iterations`, not `0.97 copies an iteration`.
"""

from __future__ import annotations

import re
from fractions import Fraction

_RUN = "the recorded work"
_MOST = 100  # iterations that a count is given over
_RARE = (200, 500, 1000, 10_000, 10**6)  # tried next: of 4 in 135 a saved report holds six digits
_EXACT = 0.006  # two digits were printed
_NEARLY_ONE = 0.95  # from here on a fraction tells no reader more
_OF_RUN = (
    (r"\bthe steady iterations\b", _RUN),
    (r"\bThe steady iterations show\b", f"{_RUN.capitalize()} shows"),
    (r" ?[^.]*--iteration-time\b[^.]*\.", ""),  # there is none to give
    (r"\b(of|in) (?:each|every|an|the) ([\d.,]+ \S+) iteration\b", r"\1 the \2 of recorded work"),
    (r"\b(in|of|to) (?:every|each|an|one|the) iteration\b", rf"\1 {_RUN}"),
    (r"\b(yet|where|that|average) an iteration\b", rf"\1 {_RUN}"),
    (r"\b(?:Every|Each|An) iteration\b", _RUN.capitalize()),
    (r"\b(?:every|each) iteration\b", _RUN),
    (r"\b(?:an|per) iteration\b", "in all"),
    (r"\bthe iteration\b", _RUN),
)
_FRACTION = re.compile(r"\b(0\.\d+) (\w+(?: \w+)?) (?:an|of an|in every|in each|per) iteration\b")


def of_run(text: str) -> str:
    """The sentence about the run as a whole: there is no iteration to speak of."""
    for pattern, words in _OF_RUN:
        text = re.sub(pattern, words, text)
    return text


def counted(text: str, iterations: int | None = None) -> str:
    """The sentence with counts below one an iteration as whole numbers over several iterations, of so many that the
    loop has: over all of them where two digits tell the count.
    """

    def said(found: re.Match[str]) -> str:
        value, noun = float(found[1]), found[2]
        if iterations and iterations <= _MOST:
            count = round(value * iterations)
            if 0 < count < iterations and abs(count / iterations - value) <= _half_digit(found[1]):
                return _in(count, noun, iterations)
        if value >= _NEARLY_ONE:
            return f"about {_once(noun)} an iteration"
        return f"about {words}" if (words := over(value, noun)) else found[0]

    return _FRACTION.sub(said, text)


def over(value: float, noun: str, exact: float = _EXACT) -> str:
    """`8 copies in 9 iterations` for 0.89 and `copies`; empty where the value is not below one.

    exact: how far the value may be off, as a part of it.
    """
    if not 0 < value < 1:
        return ""
    part = next(
        part
        for most in (*range(2, _MOST, 2), *_RARE)
        if abs((part := Fraction(value).limit_denominator(most)) - value) <= exact * value and part < 1
    )
    return _in(part.numerator, noun, part.denominator)


def _in(count: int, noun: str, iterations: int) -> str:
    return f"{count} {_one(noun) if count == 1 else noun} in {iterations:,} iterations"


def _once(noun: str) -> str:
    """`once` of times, and `one copy` of copies."""
    return "once" if noun == "times" else f"one {_one(noun)}"


def _half_digit(printed: str) -> float:
    """The distance that a number as printed may have from what it was."""
    return float(0.51 * 10 ** -(len(printed) - 2))


def _one(noun: str) -> str:
    """The singular of a plural as rules write them."""
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    return noun[:-2] if noun.endswith(("ches", "sses")) else noun.removesuffix("s")
