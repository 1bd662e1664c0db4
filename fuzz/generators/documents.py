"""Damage to JSON and TOML that is still JSON and TOML: other values, keys lost and added, lists grown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from fuzz.generators import hostile

Spot = tuple[Any, Any]
"""A list or an object, and the index or key in it."""


def _spots(value: Any) -> list[Spot]:
    found: list[Spot] = []
    stack = [value]
    while stack:
        inner = stack.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in keys:
            found.append((inner, key))
            stack.append(inner[key])
    return found


def _json_value(random: Random, like: Any = None) -> Any:
    kind = random.random()
    if isinstance(like, int | float) and not isinstance(like, bool) and kind < 0.6:
        return random.choice(
            (
                0,
                -like,
                like * 1e6,
                like * 1e-12,
                like + 1,
                -1,
                1e14,
                5e-324,
                1e-10,
                2**40,
                0.3,
                1.5,
                like * -1e-3,
                10**30,
            )
        )
    if isinstance(like, str) and kind < 0.5:
        return hostile.text(random)
    return random.choice(
        (
            None,
            True,
            [],
            {},
            "",
            [None],
            [[]],
            {"a": 1},
            0,
            -1.5,
            hostile.text(random),
            hostile.number(random),
            [1] * 50,
        )
    )


def changed(content: Any, random: Random, _: Any) -> Any:
    spots = _spots(content)
    for inner, key in random.sample(spots, min(len(spots), random.choice((1, 1, 2, 5)))):
        inner[key] = _json_value(random, inner[key])
    return content


def removed(content: Any, random: Random, _: Any) -> Any:
    inner, key = random.choice(_spots(content))
    del inner[key]
    return content


def repeated(content: Any, random: Random, _: Any) -> Any:
    lists = [inner[key] for inner, key in _spots(content) if isinstance(inner[key], list) and inner[key]]
    if lists:
        chosen = random.choice(lists)
        copies = json.dumps(random.choice(chosen))
        chosen.extend(json.loads(copies) for _ in range(random.choice((1, 2, 300))))
    return content


def moved(content: Any, random: Random, _: Any) -> Any:
    """One part where another belongs."""
    spots = _spots(content)
    (inner, key), (source, name) = random.choice(spots), random.choice(spots)
    inner[key] = json.loads(json.dumps(source[name]))
    return content


def mixed(content: Any, random: Random, other: Any) -> Any:
    """A part of another file at the same place."""
    if isinstance(content, dict) and isinstance(other, dict):
        both = [key for key in content if key in other]
        if both:
            key = random.choice(both)
            content[key] = other[key]
    return content


def figures(content: Any, random: Random, _: Any) -> Any:
    """Many figures scaled, negated or set to nothing at once."""
    change = random.choice((0, -1, 1e-9, 1e9, 1e12, 0.5, 1e-300))
    for inner, key in _spots(content):
        if (
            isinstance(inner[key], int | float)
            and not isinstance(inner[key], bool)
            and random.random() < 0.3
            and key != "schema_version"
        ):
            inner[key] = type(inner[key])(inner[key] * change)
    return content


def words(content: Any, random: Random, _: Any) -> Any:
    """Hostile text wherever there is text."""
    for inner, key in _spots(content):
        if isinstance(inner[key], str) and random.random() < 0.1:
            inner[key] = hostile.text(random)[:20_000]
    return content


STEPS: Mapping[str, Callable[[Any, Random, Any], Any]] = {
    "changed": changed, "removed": removed, "repeated": repeated, "moved": moved, "mixed": mixed, "figures": figures,
    "words": words,
}  # fmt: skip


def damaged(name: str, content: bytes, random: Random, other: bytes) -> bytes:
    """The JSON after that step; unchanged when it is no JSON any more."""
    try:
        value, second = json.loads(content), json.loads(other or b"{}")
        return json.dumps(STEPS[name](value, random, second), indent=random.choice((None, 1))).encode()
    except (ValueError, IndexError, RecursionError, OverflowError):
        return content


TOML_VALUES = (
    '"4.2 ms"', '"-1 ms"', '"1e999 s"', '"nan ms"', '"15 %"', '"-3 %"', '"200 %"', '"0 %"', "0", "-1", "1e400", "nan",
    "inf", "-inf", "true", "[]", "{}", "[[]]", '""', '"\\u0000"', '"\\uD800"', '"""\n\n"""', "1979-05-27",
    "1979-05-27T07:32:00Z", "25:61:00", "9" * 5000, "0x" + "f" * 400, '"high"', '"none"', '["S01", 5]',
    '["' + "A" * 999 + '"]', '"ignore"', '"*"', '"../x.json"', '"\u202e"', "{a = {b = {c = 1}}}", "[" * 200,
    '"4.2 parsecs"', '"1_000 ms"', '"\u0661 ms"', '"1e3 ms"', '"4.2ms\\n"', "07", "1__0", "'''x'''", "1.", ".5", "+99",
    "9999-12-31", "0001-01-01",
)  # fmt: skip
TOML_LINES = (
    "[budgets.longest]", "[budgets]", "[[findings.suppress]]", "[findings]", "[tool.gpudiag]", "idle = 0.1",
    'fail_on = "low"', "x = 1", "= 1", "[a.b.c", 'code = "S01"', 'until = "2027-03-31"', "until = 2027-03-31",
    'place = "*"', 'reason = ""', 'missing = "ignore"', "[budgets.'*']", '[budgets."a\\nb"]', "a.b.c.d = 1",
    "[" + "a." * 3000 + "b]", "launches = 5", "iteration_time = 5", 'baseline = "known.json"', 'allow = ["S01"]',
    "max_gain = 2",
)  # fmt: skip


def toml(content: bytes, random: Random) -> bytes:
    """A line with another value, a line more, a line less."""
    lines = content.decode("utf-8", "replace").split("\n")
    at, kind = random.randrange(len(lines)), random.choice((0, 0, 0, 0, 0, 2, 2, 3, 4))
    if kind == 0:
        filled = [number for number, line in enumerate(lines) if "=" in line] or [at]
        chosen = random.choice(filled)
        lines[chosen] = f"{lines[chosen].split('=')[0]}= {random.choice(TOML_VALUES)}"
    elif kind == 2:
        lines.insert(at, random.choice(TOML_LINES))
    elif kind == 3:
        lines[at] = lines[at].split("=")[-1] if random.random() < 0.3 else ""
    else:
        lines[at:at] = lines[at : at + 5] * random.choice((1, 300))
    return "\n".join(lines).encode("utf-8", "replace")
