"""The answer of `gpudiag next`: Markdown for people, JSON for bots."""

from __future__ import annotations

import json
import shlex

from gpudiag.next_steps.proposals import NextSteps, Proposal
from gpudiag.report import json_format
from gpudiag.report.markdown import Safe, environment
from gpudiag.report.wording import words
from gpudiag.text import escape
from gpudiag.text.format import num, pct

WIDTH = 76
INDENT = "    "


def markdown(steps: NextSteps) -> str:
    """The page, ending in a newline."""
    kernels = [
        {
            "kernel": kernel,
            "facts": [Safe(fact) for fact in _facts(kernel)],
            "command": Safe(wrapped(kernel.command)),
        }
        for kernel in steps.kernels
    ]
    then = Safe(wrapped(steps.then)) if steps.then else None
    text = environment().get_template("next.md.j2").render(steps=steps, kernels=kernels, then=then)
    return f"{text.strip()}\n"


def as_json(steps: NextSteps) -> str:
    """Indented ASCII JSON, ending in a newline."""
    return json.dumps(json_format.tidy(steps.model_dump()), indent=2, allow_nan=False) + "\n"


def wrapped(command: str) -> str:
    """The command in lines that fit a page, still one command to a shell; an option stays beside its value."""
    units: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if units and units[-1].startswith("-") and " " not in units[-1]:
            units[-1] += f" {word}"
        else:
            units.append(word)
    lines = [""]
    for unit in units:
        if lines[-1] and len(lines[-1]) + len(unit) >= WIDTH:
            lines.append(f"{INDENT}{unit}")
        else:
            lines[-1] += f" {unit}" if lines[-1] else unit
    return " \\\n".join(lines)


def _facts(kernel: Proposal) -> list[str]:
    """Return the timeline's figures about it."""
    loop = escape.code(kernel.loop)
    bound = "" if kernel.replayed else "at most "
    later = kernel.saved_share_then
    then = f" ({pct(later)} once the finding above is fixed)" if later is not None else ""
    facts = [
        f"{pct(kernel.share)} of {loop}",
        f"twice as fast, it would save {bound}{pct(kernel.saved_share)} of {loop}{then}",
        f"{num(kernel.launches)} launch{'' if kernel.launches == 1 else 'es'} an iteration",
        f"{words.duration(kernel.median_ms)} each",
    ]
    if kernel.grid and kernel.block:
        facts.append(f"{words.plural(kernel.grid, 'block')} of {words.plural(kernel.block, 'thread')}")
    if kernel.sizes > 1:
        facts.append(f"the most costly of {words.plural(kernel.sizes, 'launch size')}")
    if kernel.library:
        facts.append("from a library")
    return facts
