"""A gpudiag.toml to start from: the figures of today's report with a margin."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from gpudiag.gate.budgets import MEASURES, lacks
from gpudiag.gate.config import LONGEST
from gpudiag.model import Loop, Report
from gpudiag.text.format import base_name

HEAD = """\
# What `gpudiag check` holds a capture to. Figures are those of {files}, with a margin.

[findings]
fail_on = "high"                           # info, low, medium or high
# max_gain = "10 %"                        # a finding worth more of all steady time fails
# Findings known today: write them with
#   {accept}
# and take away the # here. From then on only others fail.
# baseline = "{baseline}"

# [[findings.suppress]]
# code = "S01"
# place = "train.py"
# reason = "the loss is printed on purpose"
# until = 2027-03-31
"""


def text(report: Report, settings: Mapping[str, float], accept: str, baseline: str) -> str:
    """The file, ready to be written. accept: the command that writes the baseline."""
    files = ", ".join(base_name(item.file) for item in report.inputs[:3]) or "one report"
    parts = [HEAD.format(files=_shown(files), accept=_shown(accept), baseline=baseline)]
    loops = [loop for loop in report.run.loops if loop.share_of_span >= settings["start_min_share"]]
    parts += [_table(loop, name, settings) for name, loop in {_name(loop): loop for loop in reversed(loops)}.items()]
    if not loops:
        parts.append('# No loop was found in it: a budget needs a timeline.\n# [budgets.longest]\n# idle = "20 %"\n')
    return "\n".join(parts)


def _shown(text: str) -> str:
    """Fit for a comment, which ends with its line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _name(loop: Loop) -> str:
    """The loop's name, where it has one that the next capture will have too and that TOML can hold."""
    if loop.source != "nvtx" or not loop.name.isprintable():
        return LONGEST
    return loop.name if re.fullmatch(r"[A-Za-z0-9_-]+", loop.name) else json.dumps(loop.name, ensure_ascii=False)


def _table(loop: Loop, name: str, settings: Mapping[str, float]) -> str:
    factor, points = 1 + settings["start_margin_time"], settings["start_margin_share"]
    lines = [f"[budgets.{name}]"]
    for measure in MEASURES:
        value = measure.of(loop)
        if loop.source == "unknown" and measure.unit != "share":
            continue
        if measure.unit == "ms" and (doubt := lacks(measure, loop, settings)):
            lines.append(f"# {measure.limit}: {doubt}")
        elif measure.unit == "ms":
            basis = "without the profiler" if loop.iteration_ms_unprofiled else "under the profiler"
            lines.append(f'{measure.limit} = "{_up(value * factor):.12g} ms"  # {value:.4g} ms {basis}')
        elif measure.unit == "launches" and value:
            lines.append(f"{measure.limit} = {math.ceil(value * factor)}  # {value:.4g}")
        elif measure.limit in ("idle", "exposed_communication") and value:
            lines.append(f'{measure.limit} = "{min(100, math.ceil((value + points) * 100))} %"  # {value * 100:.3g} %')
    return "\n".join(lines) + "\n"


def _up(value: float) -> float:
    """Up to the next figure of three digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / unit) * unit
