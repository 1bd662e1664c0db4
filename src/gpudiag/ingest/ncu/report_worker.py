"""Child process that reads a .ncu-rep with NVIDIA's package `ncu-report`: one JSON line a profiled launch.

A damaged report can crash the package's native library, so `report` runs this file by itself, with limits: it imports
nothing of ours, and no report can do more here than end this process. The package gives values in base units.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

MOST_LINES = 50  # of a launch: the tail of the samples says nothing

_STALLED = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED = "_not_issued"
_LISTS = ("breakdown:", "group:")  # names of other metrics, which no page of ncu prints
_KINDS = {1: "INF", 2: "OPT", 3: "WRN", 4: "ERR"}
_SCOPES = {1: "local", 2: "global"}
# How a rule's message links: @url:words:address@, @section:id:words@, @sass:address:words@, @source:file:line:words@
_URL = re.compile(r"@url:([^:@]*):([^@]*)@")
_LINK = re.compile(r"@(?:section|sass|source):[^@]*?([^:@]*)@")


def launches(report: str) -> Any:
    """Each profiled launch as a dict; `new` are metric names not seen before, which `metrics` counts on from."""
    import ncu_report

    context = ncu_report.load_report(report)
    known: dict[str, int] = {}
    for at in range(context.num_ranges()):
        results = context.range_by_idx(at)
        for index in range(results.num_actions()):
            yield _launch(results.action_by_idx(index), known)


def _launch(action: Any, known: dict[str, int]) -> dict[str, Any]:
    metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
    cells = {name: _cell(metric) for name, metric in metrics.items() if not name.startswith(_LISTS)}
    new = [name for name in cells if name not in known]
    known.update((name, at) for at, name in enumerate(new, len(known)))
    major, minor = (cells.get(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return {
        "kernel": action.name(action.NameBase_DEMANGLED) or action.name(),
        "cc": f"{major}.{minor}" if major is not None and minor is not None else None,
        "stream": cells.get("launch__stream_id"),
        "new": new,
        "metrics": [(known[name], cell) for name, cell in cells.items() if cell not in (None, "")],
        "rules": [rule for result in action.rule_results() if (rule := _rule(result))],
        "lines": _lines(action, metrics),
    }


def _cell(metric: Any) -> float | str | None:
    """A number, a text, or None for a metric that has values of instances only; as ncu's raw page prints them."""
    if not metric.has_value():
        return None if metric.num_instances() else "no data"
    value: float | str | None = metric.value()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _rule(result: Any) -> dict[str, Any] | None:
    said = result.rule_message() if result.has_rule_message() else None
    if not said or not said["message"]:
        return None
    worth = result.speedup_estimation() if result.has_speedup_estimation() else {}
    return {
        "section": result.section_identifier(),
        "rule": result.rule_identifier(),
        "kind": _KINDS.get(int(said["type"]), ""),
        "text": _LINK.sub(r"\1", _URL.sub(r"\1 (\2)", said["message"])),
        "scope": _SCOPES.get(int(worth.get("type", 0))),
        "estimate": f"{worth['speedup']:.4g}" if worth else None,  # the digits that ncu prints
    }


def _lines(action: Any, metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """Samples of source lines, worst first; of single instructions where the report knows no lines."""
    taken: dict[int, int] = {}
    waiting: dict[int, int] = {}
    for name, metric in metrics.items():
        # Most reasons were seen nowhere: their sum spares asking for each instruction.
        if (
            name.startswith(_STALLED)
            and metric.has_correlation_ids()
            and (metric.as_uint64() or not metric.has_value())
        ):
            _add(waiting if name.endswith(_NOT_ISSUED) else taken, metric)
    counted = any(name.startswith(_STALLED) and name.endswith(_NOT_ISSUED) for name in metrics)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for pc, samples in sorted(taken.items(), key=lambda item: (-item[1], item[0])):
        if not samples:
            continue
        source, sass = action.source_info(pc), " ".join((action.sass_by_pc(pc) or "").split())
        key = (source.file_name(), source.line()) if source else (None, None, pc)
        # The first instruction of a line is its worst.
        line = found.setdefault(key, {"file": key[0], "line": key[1], "sass": sass, "samples": 0, "not_issued": 0})
        line["samples"] += samples
        line["not_issued"] = line["not_issued"] + waiting.get(pc, 0) if counted else None
    return sorted(found.values(), key=lambda line: -line["samples"])[:MOST_LINES]


def _add(to: dict[int, int], metric: Any) -> None:
    ids = metric.correlation_ids()
    for at in range(metric.num_instances()):
        pc = ids.as_uint64(at)
        to[pc] = to.get(pc, 0) + metric.as_uint64(at)


def _limit_self(seconds: int, memory: int, answer: int) -> None:
    import resource  # only POSIX has it

    wanted = {
        resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: answer,
        resource.RLIMIT_CORE: 0,
    }  # fmt: skip
    for limit, most in wanted.items():
        _, hard = resource.getrlimit(limit)
        lowest = most if hard == resource.RLIM_INFINITY else min(most, hard)  # nobody may raise what is lower already
        resource.setrlimit(limit, (lowest, lowest))


if __name__ == "__main__":
    _limit_self(*map(int, sys.argv[3:6]))
    # Names of the traced program may be no UTF-8.
    with open(sys.argv[2], "w", encoding="utf-8", errors="replace") as answer:
        for launch in launches(sys.argv[1]):
            if not launch["metrics"]:  # what the package makes of a launch whose bytes it cannot read
                sys.exit("a launch in it has no metrics")
            answer.write(json.dumps(launch, ensure_ascii=False) + "\n")
