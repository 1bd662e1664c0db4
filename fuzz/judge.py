"""Judge of a run's output: right is a report with possible figures, or one sentence; all else is found."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fuzz.given import Given, Sound

LONGEST = 400  # characters of an error, less the names of files
SLACK = 1e-6  # of shares and their sums, which are written with six digits
BUDGET_SLACK = 0.0101  # saved reports are taken when their parts are off by a hundredth
USUAL_CODES: Mapping[str, tuple[int, ...]] = {"explain": (0,), "diff": (0,), "check": (0, 1), "rules": (0, 1)}
LARGEST_REPORT = 20_000_000  # characters


class Found(Exception):
    """Fault in a word, with its details."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


def judged(given: Given, folder: Path, code: int, said: str, printed: str, output: Path | None) -> tuple[str, str]:
    """`report` or `refused`, and what to count it under. Raises Found."""
    if "Traceback (most recent call last)" in said:
        raise Found("traceback printed", said[-3000:])
    if code == 2:
        if output and output.exists() and given.words[0] != "diff":  # which tells why it cannot compare
            raise Found("output beside an error", said)
        if printed:
            raise Found("printed beside an error", printed[:500])
        return "refused", _sentence(said, given, folder)
    if code not in USUAL_CODES[given.words[0]]:
        raise Found(f"exit code {code}", said)
    if any(not line.startswith("gpudiag: ") for line in said.splitlines()):
        raise Found("noise on stderr", said[:2000])
    if output is None:
        return "report", "rules check"
    if printed:
        raise Found("noise on stdout", printed[:500])
    text = output.read_text("utf-8")
    if not text.strip() or len(text) > LARGEST_REPORT:
        raise Found("report of no or absurd length", f"{len(text)} characters")
    if output.suffix != ".json":
        return "report", output.suffix[1:]
    content = strict(text)
    if given.words[0] == "explain":
        report(content, saved=given.main.endswith(".json"))
        unseen(given.sound, content)
        rendered(output)
        return "report", str(content["verdict"]["state"])
    return "report", given.words[0]


def _sentence(said: str, given: Given, folder: Path) -> str:
    """The error without what differs from file to file. Raises Found where it is not one good sentence."""
    text = said.replace(f"{folder}/", "").strip("\n")
    if not text.startswith("gpudiag: ") or len(text) < 20:
        raise Found("no sentence on stderr", said[:2000])
    if "\n" in text:
        raise Found("error of several lines", said[:2000])
    if any(not (c.isprintable() or c.isspace()) for c in text):
        raise Found("control characters in an error", text)
    names = {part for name in (*given.files, *given.special, given.main) for part in name.split("/")}
    plain = [name for name in names if name.isprintable()]
    # A file that a damaged configuration names, or the two sides of a comparison.
    elsewhere = (given.words[0] == "check" and "baseline" in said) or "cannot be compared" in said
    if plain and len(plain) == len(names) and not elsewhere and not any(name in said for name in plain):
        raise Found("error names no file", text)
    for name in sorted(plain, key=len, reverse=True):
        text = text.replace(name, "FILE")
    if len(text) > LONGEST:
        raise Found("error too long", text)
    return re.sub(r"\d+", "9", re.sub(r"'[^']*'|\([^)]*\)", "…", text))[:150]


def strict(text: str) -> Any:
    """The JSON, by the letter. Raises Found."""

    def no(name: str) -> None:
        raise Found("JSON holds NaN or infinity", name)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise Found("JSON holds a key twice", str([key for key, _ in pairs])[:300])
        return dict(pairs)

    try:
        return json.loads(text, parse_constant=no, object_pairs_hook=once)
    except ValueError as error:
        raise Found("no JSON", str(error)) from None


def _figures(value: Any, place: str = "", key: str = "") -> Iterator[tuple[str, str, float]]:
    """Every number with its place, less the positions in lists, and its key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _figures(inner, f"{place}.{name}", name)
    elif isinstance(value, list):
        for inner in value:
            yield from _figures(inner, place, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, key, value


_TIME = re.compile(r"(^|_)(ms|ns|us|duration|bytes|launches|iterations|calls|count)$")
_SHARE = re.compile(r"(^|_)(share|share_of_\w+|part)$")


def report(content: Any, *, saved: bool = False) -> None:
    """Raises Found for a figure that cannot be; of a saved report that was read, what it says of gains is its own."""
    for place, key, value in _figures(content):
        place = re.sub(r"^\.(findings|minor)\.evidence\.", ".evidence.", place)
        if not math.isfinite(value):
            raise Found(f"infinite figure at {place}", str(value))
        if _TIME.search(key) and value < 0:
            raise Found(f"negative figure at {place}", str(value))
        if _SHARE.search(key) and not -SLACK <= value <= 1 + SLACK:
            raise Found(f"share outside 0 to 1 at {place}", str(value))
    for loop in content["run"]["loops"]:
        total = sum(loop["budget"].values())
        if loop["budget"] and abs(total - 1) > BUDGET_SLACK:
            raise Found("budget does not sum to 1", str(loop["budget"]))
        if any(not -SLACK <= part <= 1 + SLACK for part in loop["budget"].values()):
            raise Found("part of the budget outside 0 to 1", str(loop["budget"]))
        if loop["iterations"] < 1 or loop["iteration_ms"] < 0:
            raise Found("loop without iterations", str(loop)[:500])
    if sum(loop["share_of_span"] for loop in content["run"]["loops"]) > 1 + BUDGET_SLACK:
        raise Found("loops take more than the whole run", "")
    for finding in () if saved else (*content["findings"], *content["minor"]):
        _gain(finding["code"], finding["gain"])


def said_of(content: Any) -> Sound:
    """Return the report's statements that damage may not change in silence."""
    codes = {item["code"] for item in (*content["notes"], *content["not_evaluated"])}
    return Sound(str(content["verdict"]["state"]), tuple(sorted(codes)))


def unseen(before: Sound | None, content: Any) -> None:
    """Raises Found where facts were taken away, and problems became health without a word."""
    now = said_of(content)
    if before and before.state == "problems" and now.state == "healthy" and set(now.said) <= set(before.said):
        raise Found("problems became healthy without a note", str(content["verdict"]))


def _gain(code: str, gain: Mapping[str, Any]) -> None:
    before, after, low, high = (gain[name] for name in ("before_ms", "after_ms", "low_ms", "high_ms"))
    if before is not None and after is not None and after > before * (1 + SLACK):
        raise Found(f"{code} makes it slower", str(gain))
    if low is not None and high is not None and low > high * (1 + SLACK):
        raise Found(f"{code} has an interval turned round", str(gain))


def rendered(output: Path) -> None:
    """Our own report has to be one that we read, and that prints in every format."""
    from gpudiag.errors import GpudiagError
    from gpudiag.report import formats
    from gpudiag.report import saved as load

    try:
        again = load.read(output)
    except GpudiagError as error:
        raise Found("own report is refused", str(error)) from None
    for form in formats.ALL:
        text = formats.render(again, form.name)
        text.encode("utf-8")
        if form.suffix.endswith((".json", ".sarif")):
            strict(text)
