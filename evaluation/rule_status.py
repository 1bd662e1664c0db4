"""Say which rules the labelled corpus backs, and write that into them:  python -m evaluation.rule_status [--check]

A rule is *stable* when, on the committed scores (docs/accuracy.json) and captures,

* it, or a cause that its label accepts beside it, is the first finding on every slow variant planted with it, on one at
  least, and one of these belongs to a validation program, which set no constant;
* it is not said on the variant that fixes that fault, nor above a twentieth on any healthy program;
* no label rules out a finding of it that is said.

Every other rule is a draft; deprecated ones stay as they are. With --check nothing is written: it fails when a rule's
status is another one. The findings of suppressors and hygiene rules are not scored, so only findings change.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation import corpus

SCORES = corpus.ROOT / "docs" / "accuracy.json"
RULES = corpus.ROOT / "rules"
_STATUS = re.compile(r"^status: (draft|stable)$", re.MULTILINE)
_BESIDE = ("/ranges left out", "/no-nvtx", "/both")  # the same program once more: no further evidence


@dataclass
class Evidence:
    """The corpus's evidence on one rule: program/variant of each kind."""

    first: list[str] = field(default_factory=list)
    validation: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)  # a miss, an alarm, or a finding that its label rules out

    @property
    def backed(self) -> bool:
        """Return whether it may be called stable."""
        return bool(self.first and self.validation and not self.against)


def evidence(scores: Mapping[str, Mapping[str, Any]], fixed: Mapping[str, str]) -> dict[str, Evidence]:
    """Return the evidence on each rule code. fixed: program/variant of a fix → the code of the fault that it fixes."""
    found: dict[str, Evidence] = {}
    for key, score in sorted(scores.items()):
        planted, first = score.get("planted"), score.get("first")
        if score["role"] == "slow" and not key.endswith(_BESIDE):
            own = found.setdefault(str(planted), Evidence())
            if score.get("rank") == 1 and first == planted:
                own.first.append(key)
                if score["split"] == "validation":
                    own.validation.append(key)
            elif score.get("rank") != 1:
                own.against.append(f"{key}: {first or 'nothing'} is first")
        alarms = score.get("alarms", ()) if score["role"] == "healthy" else ()
        for code in alarms:
            found.setdefault(code, Evidence()).against.append(f"{key}: said of a healthy program")
        if fixed.get(key) in score.get("alarms", ()):
            found.setdefault(fixed[key], Evidence()).against.append(f"{key}: still said of the fixed variant")
        for code in score.get("forbidden", ()):
            found.setdefault(code, Evidence()).against.append(f"{key}: said, though its label rules it out")
    return found


def fixes() -> dict[str, str]:
    """Return the fault that each fixed variant fixes, by program/variant."""
    found = {}
    for case in corpus.cases():
        if case.role == "slow" and case.expect.get("fixed_by"):
            found[f"{case.slug}/{case.expect['fixed_by']}"] = str(case.expect["top"])
    return found


def wanted(found: Mapping[str, Evidence]) -> dict[Path, str]:
    """Return each finding's file with the status that it should have, deprecated ones left out."""
    result = {}
    for rule in corpus.library().rules:
        if rule.kind == "finding" and rule.status != "deprecated":
            backed = rule.code in found and found[rule.code].backed
            result[RULES / rule.family / f"{rule.id}.yaml"] = "stable" if backed else "draft"
    return result


def wrong(statuses: Mapping[Path, str]) -> list[Path]:
    """Return the files whose status is another one."""
    return [path for path, status in statuses.items() if f"\nstatus: {status}\n" not in path.read_text("utf-8")]


def write(paths: Iterable[Path], statuses: Mapping[Path, str]) -> None:
    """Write the statuses into these files."""
    for path in paths:
        path.write_text(_STATUS.sub(f"status: {statuses[path]}", path.read_text("utf-8"), count=1), "utf-8")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a status is another one")
    args = parser.parse_args()
    found = evidence(json.loads(SCORES.read_text("utf-8")), fixes())
    statuses = wanted(found)
    off = wrong(statuses)
    if args.check:
        names = ", ".join(str(path.relative_to(corpus.ROOT)) for path in off)
        print(f"Run `python -m evaluation.rule_status`: the status is another one in {names}." if off else "as scored")
        return 1 if off else 0
    write(off, statuses)
    for code, one in sorted(found.items()):
        said = [f"first on {len(one.first)}", f"validation {len(one.validation)}", *one.against]
        print(f"{code}: {'stable' if one.backed else 'draft'}; {'; '.join(said)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
