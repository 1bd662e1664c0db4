"""The baseline of accepted findings: findings matched to known ones, those that are gone, and suppressed places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from gpudiag import files
from gpudiag.diagnosis import loop_names
from gpudiag.errors import GpudiagError
from gpudiag.gate.config import Suppression
from gpudiag.gate.result import AbsentFinding, Baseline, Doubt, KnownFinding, SuppressionCheck
from gpudiag.model import Finding, Loop, Place, Report, vocabulary
from gpudiag.text.format import base_name, pct


class Absent(NamedTuple):
    gone: tuple[KnownFinding, ...]
    unseen: tuple[KnownFinding, ...]
    """What their rules need was not recorded, or another rule overruled them."""
    small: tuple[KnownFinding, ...]
    """There, but too small to be listed."""


def absent(report: Report, baseline: Baseline) -> Absent:
    listed = matched(report, baseline)
    small = tuple(entry for index, entry in listed.items() if index >= len(report.findings))
    rest = [entry for entry in baseline.findings if not any(entry is other for other in listed.values())]
    blind = {item.code for item in report.not_evaluated} | {item.code for item in report.suppressed}
    gone = tuple(entry for entry in rest if entry.code not in blind and report.verdict.state != "cannot_tell")
    unseen = tuple(entry for entry in rest if entry not in gone)
    return Absent(gone, unseen, small)


def doubted(
    entry: KnownFinding, report: Report, parts: Sequence[str], settings: Mapping[str, float], *, failed: bool
) -> AbsentFinding:
    """The entry with what speaks against its being fixed: the time it cost is still lost, or something new fails.

    parts: of the time budget, those that its rule explains.
    """
    doubt, reason = _doubt(entry, report, parts, settings, failed)
    return AbsentFinding(**dict(entry), doubt=doubt, reason=reason)


def _doubt(
    entry: KnownFinding, report: Report, parts: Sequence[str], settings: Mapping[str, float], failed: bool
) -> tuple[Doubt, str]:
    part = settings["known_hidden_part"]
    enough = entry.worth * part if entry.worth else settings["known_grown_share"]
    for key in parts:
        loop, share = _still(key, entry, report)
        if vocabulary.is_idle(key) and loop and share * loop.share_of_span >= enough:
            return (
                "same_idleness",
                f"the GPU still {vocabulary.BUDGET[key].does} for {pct(share)} of an iteration of `{loop.name}`",
            )
    return ("failing", "") if failed else ("none", "")


def _still(key: str, entry: KnownFinding, report: Report) -> tuple[Loop | None, float]:
    """The loop that the entry names (where it names none, the longest), and the part of it in question."""
    loops = sorted(report.run.loops, key=lambda loop: -loop.share_of_span)
    named = (
        loops
        if entry.loop is None
        else [loop for loop in loops if entry.loop in (*loop_names.known(loop), loop.marker)]
    )
    return (named[0], named[0].budget.get(key, 0.0)) if named else (None, 0.0)


LARGEST = 20_000_000  # bytes
DIGITS = 2  # of a share: more would change with every run
KEYS = Baseline.model_fields.keys()
Key = tuple[str | None, ...]


def read(path: Path) -> Baseline:
    """The baseline in the file. Raises GpudiagError."""
    again = "Write it again: `gpudiag check --baseline … --update-baseline CAPTURE`."
    try:
        content = files.json_content(path, LARGEST, "baseline")
    except FileNotFoundError:
        raise GpudiagError(f"There is no baseline {path}: write it with --update-baseline.") from None
    except OSError as error:
        raise GpudiagError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise GpudiagError(f"{path} is not JSON. {again}") from None
    # It may be written over: any other JSON, a report too, must not be taken for a baseline without findings.
    if not isinstance(content, dict) or not content.keys() >= KEYS or "tool" in content:
        raise GpudiagError(f"{path} is JSON, but no baseline of gpudiag: name another file, or remove this one.")
    try:
        return Baseline.model_validate(content, extra="ignore")
    except (ValidationError, RecursionError) as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "nesting"
        raise GpudiagError(f"{path} is no baseline of gpudiag ({place or 'no object'}). {again}") from None


def text(baseline: Baseline) -> str:
    """Indented JSON, the same for the same findings."""
    return json.dumps(baseline.model_dump(mode="json", exclude_none=True), indent=2, allow_nan=False) + "\n"


def matched(report: Report, baseline: Baseline) -> dict[int, KnownFinding]:
    """Place in the report (its findings, then its minor ones) → the known finding that it is.

    By fingerprint, else by rule and a place that both have. Each known finding is used once.
    """
    findings = (*report.findings, *report.minor)
    left = list(baseline.findings)
    found: dict[int, KnownFinding] = {}
    for index, finding in enumerate(findings):
        same = next((e for e in left if e.code == finding.code and e.fingerprint == finding.fingerprint), None)
        if same:
            found[index] = same
            left.remove(same)
    for index, finding in enumerate(findings):
        if index in found:
            continue
        near = [(_nearness(entry, finding, report), entry) for entry in left if entry.code == finding.code]
        (shared, _), best = max(near, key=lambda item: item[0], default=((0, False), None))
        if best and shared:
            found[index] = best
            left.remove(best)
    return found


def _nearness(entry: KnownFinding, finding: Finding, report: Report) -> tuple[int, bool]:
    """Return how many places both have and whether the loop is the same; without places the loop decides."""
    loop = loop_of(finding, report)
    same_loop = entry.loop in ((*loop_names.known(loop), loop.marker) if loop else (None,))
    if not entry.places and not finding.where:
        return int(same_loop), same_loop
    by_line = all(any(place.file for place in places) for places in (entry.places, finding.where))
    return len(_sites(entry.places, by_line) & _sites(finding.where, by_line)), same_loop


def _sites(places: Iterable[Place], by_line: bool) -> set[Key]:
    """Places as they survive an edit and another checkout; range or kernel where one side has no lines."""
    if by_line:
        return {(base_name(place.file), place.function) for place in places if place.file}
    return {(place.nvtx or place.kernel,) for place in places if place.nvtx or place.kernel}


def loop_of(finding: Finding, report: Report) -> Loop | None:
    """The loop that the gain is a part of, if it is of one."""
    gain = finding.gain
    return next((loop for loop in report.run.loops if gain.basis == "loop" and loop.id == gain.loop), None)


def loop_name(finding: Finding, report: Report) -> str | None:
    loop = loop_of(finding, report)
    return (loop.nvtx_path or loop.name) if loop else None


def tell_former(report: Report, baseline: Baseline) -> None:
    """Warn of loops that the baseline names as a former version did."""
    for name in sorted({entry.loop for entry in baseline.findings if entry.loop}):
        loop_names.called(name, report.run.loops, "baseline")


def worth(finding: Finding, report: Report) -> float | None:
    """Return what the fix saves of all steady time (of one launch where only kernels were profiled). None: to be
    tested.
    """
    gain = finding.gain
    if gain.kind == "test_needed":
        return None
    loop = loop_of(finding, report)
    return gain.share * (loop.share_of_span if loop else 1.0)


def grew(now: float | None, then: float | None, settings: Mapping[str, float]) -> bool:
    """Return whether the gain is clearly larger than when it was accepted: by more than runs and replays differ."""
    if now is None or then is None:
        return False
    return now - then > settings["known_grown_share"] and now > then * settings["known_grown_times"]


def entry(finding: Finding, report: Report, before: KnownFinding | None, grown: bool, today: date) -> KnownFinding:
    """The finding as the baseline keeps it. What did not clearly grow keeps its old figure: no creeping, no noise."""
    value = worth(finding, report)
    places = {
        tuple(place.model_dump().values()): place
        for place in (
            Place(
                file=base_name(p.file) if p.file else None,
                function=p.function,
                nvtx=p.nvtx,
                kernel=None if p.file else p.kernel,
            )
            for p in finding.where
        )
    }
    if before and not grown:
        value = before.worth if before.worth is not None else value
    return KnownFinding(
        code=finding.code,
        title=finding.title,
        loop=loop_name(finding, report),
        fingerprint=finding.fingerprint,
        places=tuple(place for _, place in sorted(places.items(), key=lambda item: [str(x or "") for x in item[0]])),
        worth=None if value is None else round(min(1.0, max(0.0, value)), DIGITS),
        since=before.since if before else today,
    )


def changes(before: Baseline | None, after: Baseline) -> list[tuple[str, KnownFinding]]:
    """List what came (+), what went (−), and what is accepted with another gain (~)."""
    old = {(one.code, one.fingerprint): one for one in (before.findings if before else ())}
    new = {(one.code, one.fingerprint): one for one in after.findings}
    summary = [("−", one) for key, one in old.items() if key not in new]
    summary += [("+", one) for key, one in new.items() if key not in old]
    summary += [("~", one) for key, one in new.items() if key in old and old[key].worth != one.worth]
    return sorted(summary, key=lambda change: change[1].code)


def ordered(entries: Iterable[KnownFinding]) -> Baseline:
    return Baseline(findings=tuple(sorted(entries, key=lambda e: (e.code, e.loop or "", e.fingerprint))))


def covers(one: Suppression, finding: Finding) -> list[bool]:
    """For each place of the finding whether the suppression accepts it; a finding without places has one, unknown."""
    if one.code != finding.code:
        return [False] * max(1, len(finding.where))
    if one.place is None:
        return [True] * max(1, len(finding.where))
    return [_at(one.place, place) for place in finding.where] or [False]


def live(suppressions: Sequence[Suppression], today: date) -> list[Suppression]:
    return [one for one in suppressions if today <= one.until]


def remarkable(
    suppressions: Sequence[Suppression], findings: Sequence[Finding], today: date, notice: float
) -> list[SuppressionCheck]:
    """Those that expired, those that match nothing, and those whose last day is at most `notice` days away."""
    summary: list[SuppressionCheck] = []
    for one in suppressions:
        used = any(any(covers(one, finding)) for finding in findings)
        left = (one.until - today).days
        state = "expired" if left < 0 else "unused" if not used else "expiring" if left <= notice else ""
        if state:
            facts = {"state": state, "code": one.code, "place": one.place, "until": one.until, "reason": one.reason}
            summary.append(SuppressionCheck.model_validate(facts))
    return summary


def _at(pattern: str, place: Place) -> bool:
    """A file by its path or the end of it, a range or a kernel by its name."""
    file = (place.file or "").replace("\\", "/")
    names = [name for name in (file, place.nvtx, place.kernel) if name]
    if any(pattern == name or fnmatchcase(name, pattern) for name in names):
        return True
    return bool(file) and (file.endswith(f"/{pattern}") or fnmatchcase(file, f"*/{pattern}"))
