"""Figures and plain words: shares, times, the budget's rows, evidence, what a gain is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gpudiag.model import Finding, Loop
from gpudiag.report.escape import code, plain, prose
from gpudiag.templating import byte_size, dur, num, pct

FRAMEWORKS = {
    "pytorch": "PyTorch",
    "cupy": "CuPy",
    "numba": "Numba",
    "jax": "JAX",
    "triton": "Triton",
    "cuda": "CUDA C++",
    "any": "",
}
BUDGET = {
    "compute": "**computing**: kernels or graphs run",
    "exposed_communication": "**exchanging data between GPUs**: nothing else runs meanwhile",
    "exposed_copy": "**copying memory**: nothing else runs meanwhile",
    "idle_launch": "**idle, waiting for a launch**: the CPU had not yet sent the next work",
    "idle_sync": "**idle after a wait**: the CPU stopped for a result, so nothing was queued",
    "idle_input": "**idle, waiting for input**: the next batch was not ready",
    "idle_allocation": "**idle during allocation**: `cudaMalloc`, `cudaFree` or the like held the CPU",
    "idle_other": "**idle, the CPU is busy elsewhere**: it worked on something other than launching",
}
UNUSED = "**idle**: this loop sends it no work"
LABELS = {"matrix per turn": "matrix products per turn", "pointwise per turn": "element-wise kernels per turn"}
_PER_TURN = re.compile(r"\bper turn\b")
BAR = 20
SMALLEST = 0.0005  # of an iteration: less would be printed as 0.0 %


def duration(ms: float) -> str:
    """Milliseconds in the unit that reads best."""
    return dur(ms * 1e6)


def plural(count: int, noun: str) -> str:
    """`1 loop`, `3 loops`, `2 more processes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('ss') else 's'}"


def ranges(codes: Iterable[str]) -> list[str]:
    """Rule codes in order, neighbours drawn together: `A01–A04`, `C02`."""
    found: list[list[str]] = []
    for rule in sorted(set(codes)):
        last = found[-1][-1] if found else ""
        near = last[:1] == rule[:1] and last[1:].isdigit() and rule[1:].isdigit()
        if near and int(rule[1:]) == int(last[1:]) + 1:
            found[-1].append(rule)
        else:
            found.append([rule])
    return [item for run in found for item in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else run)]


class BudgetRow(NamedTuple):
    time: str
    share: str
    bar: str
    words: str
    key: str


def budget_rows(loop: Loop) -> list[BudgetRow]:
    """The budget in the order of its definition; rows too small to print are left out."""
    known = {key: loop.budget[key] for key in BUDGET if key in loop.budget}
    rows = [(key, share) for key, share in (known | loop.budget).items() if share >= SMALLEST]
    return [
        BudgetRow(
            time=duration(loop.iteration_ms * share),
            share=pct(share),
            bar="█" * round(share * BAR) or "▏",
            words=UNUSED if key == "idle_other" and len(rows) == 1 else BUDGET.get(key) or plain(key.replace("_", " ")),
            key=key,
        )
        for key, share in rows
    ]


def evidence(facts: Mapping[str, Any]) -> list[str]:
    """Each fact as `label = value`, unit read off the key's end; what has no compact form stays in the JSON."""
    return [f"{plain(_in_words(label))} = {text}" for key, value in facts.items() for label, text in _fact(key, value)]


def _in_words(label: str) -> str:
    """A rule's column, as far as its parts are not the reader's words."""
    return _PER_TURN.sub("an iteration", LABELS.get(label, label))


def _fact(key: str, value: Any) -> list[tuple[str, str]]:
    label, _, unit = key.rpartition("_")
    if value is None or isinstance(value, Mapping) or key == "share":
        return []
    if isinstance(value, bool):
        return [(key.replace("_", " "), "yes" if value else "no")]
    if isinstance(value, str):
        return [(key.replace("_", " "), code(value))] if value else []
    if isinstance(value, (list, tuple)):
        names = [code(item) for item in value if isinstance(item, str)]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return [(key.replace("_", " "), ", ".join(names[:3]) + more)] if names else []
    if not isinstance(value, (int, float)):
        return []
    if key.endswith("bytes_per_s"):
        label = key.removesuffix("bytes_per_s").rstrip("_").replace("_", " ")
        return [(label or "rate", f"{num(value / 1e9)} GB/s")]
    if unit == "share" and label:
        return [(key.replace("_", " "), pct(value))]
    if unit in UNITS and label:
        return [(label.replace("_", " "), UNITS[unit](value))]
    if key.startswith("ns_"):
        return [(f"time {key.removeprefix('ns_').replace('_', ' ')}", duration(value / 1e6))]
    if "bytes" in label.split("_"):  # bytes_each, bytes_per_turn
        return [(key.replace("_", " "), byte_size(value))]
    if key == "bytes":
        return [("size", byte_size(value))]
    return [(key.replace("_", " "), num(value))]


UNITS: dict[str, Callable[[float], str]] = {
    "ns": lambda v: duration(v / 1e6),
    "us": lambda v: duration(v / 1e3),
    "ms": duration,
    "s": lambda v: duration(v * 1e3),
    "bytes": byte_size,
    "pct": lambda v: pct(v / 100),
    "percent": lambda v: pct(v / 100),
}
WHOLE = "the recorded work"  # of a loop that stands for all, when no repeated step was found
BRIEF = 40  # characters of a kernel name inside a sentence
KINDS = {"expected": "expected", "upper_bound": "at most", "lower_bound": "at least"}
NOTHING_LEFT = 1e-6  # of the time before: less than a clock can tell
WORTH_SAYING = 1.1  # a speedup below this reads as "1.0 times"
LITTLE = 0.01  # of an iteration: nothing that anybody would notice
SIZES = {"expected": "about", "upper_bound": "up to", "lower_bound": "at least"}


def loop_of(finding: Finding, loops: Mapping[int, Loop]) -> Loop | None:
    """The loop that the gain is a part of, if it is of one."""
    gain = finding.gain
    return loops.get(gain.loop) if gain.basis == "loop" and gain.loop is not None else None


def basis(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """What the gain is a part of."""
    loop = loop_of(finding, loops)
    if loop:
        return WHOLE if loop.source == "unknown" else code(loop.name)
    if finding.gain.basis == "kernel":
        kernel = next((place.kernel for place in finding.where if place.kernel), None)
        return f"one launch of {code(kernel, BRIEF)}" if kernel else "one launch"
    return {"run": "the run", "window": "the steady time"}.get(finding.gain.basis, "one iteration")


def headline(finding: Finding, loops: Mapping[int, Loop], before: str = "the fixes above") -> str:
    """`up to 79 % of decode_token`. before: what to call the findings of a better rank."""
    if finding.gain.kind == "test_needed":
        return "gain to be tested"
    alone = f"{SIZES[finding.gain.kind]} {pct(finding.gain.share)} of {basis(finding, loops)}"
    more = _more(finding)
    if more is None:
        return alone
    if more < LITTLE:
        return f"nothing more once {before} are made (alone {alone})"
    if finding.gain.share < LITTLE:
        return f"nothing alone, {pct(more)} of what {before} leave"
    return alone


def _more(finding: Finding) -> float | None:
    """The part that the fix removes of what those above it leave; None for the first finding."""
    gain = finding.gain
    if finding.rank == 1 or gain.cumulative_after_ms is None or not gain.cumulative_before_ms:
        return None
    return 1 - gain.cumulative_after_ms / gain.cumulative_before_ms


def gain(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """What the fix is worth, in words: kind, before and after, interval, part of the whole, with the fixes above."""
    gain = finding.gain
    if gain.kind == "test_needed":
        return f"**Gain:** only an experiment can tell. {prose(gain.test or '')}".strip()
    loop = loop_of(finding, loops)
    said = f"**Gain, {KINDS[gain.kind]}:** {_from_to(finding, loops)}"
    if loop and loop.share_of_span < 0.95:
        said += f", which saves {pct(gain.share * loop.share_of_span)} of all steady time"
    if finding.rank > 1 and gain.cumulative_after_ms is not None and gain.cumulative_after_ms != gain.after_ms:
        said += f". With the fixes above as well: {duration(gain.cumulative_after_ms)}"
    return f"{said}."


def _from_to(finding: Finding, loops: Mapping[int, Loop]) -> str:
    gain, what = finding.gain, basis(finding, loops)
    if gain.before_ms is None or gain.after_ms is None:
        return f"{pct(gain.share)} of {what}"
    subject = "one launch" if gain.basis == "kernel" else what
    if loop_of(finding, loops) and what != WHOLE:
        subject = f"an iteration of {what}"
    if gain.after_ms < gain.before_ms * NOTHING_LEFT:
        return f"all of {subject} ({duration(gain.before_ms)})"
    detail = []
    if gain.kind == "expected" and gain.low_ms is not None and gain.high_ms is not None and gain.low_ms < gain.high_ms:
        detail.append(f"{duration(gain.low_ms)} to {duration(gain.high_ms)}")
    if gain.speedup and gain.speedup >= WORTH_SAYING:
        detail.append(f"{_two(gain.speedup)} times as fast")
    told = f" ({'; '.join(detail)})" if detail else ""
    return f"{subject} goes from {duration(gain.before_ms)} to {duration(gain.after_ms)}{told}"


def _two(value: float) -> str:
    """Two significant digits: estimates deserve no more."""
    return f"{value:.1f}" if value < 9.95 else f"{float(f'{value:.2g}'):,.0f}"
