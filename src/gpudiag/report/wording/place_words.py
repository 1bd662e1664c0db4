"""A place of the user's program in words, with all that is known of it; Markdown."""

from __future__ import annotations

from gpudiag.model import Finding, Loop, Place
from gpudiag.report.wording.words import named_function, places, plural
from gpudiag.text import escape
from gpudiag.text.format import pct


def place(one: Place, folder: str, loop: Loop | None) -> str:
    """`decode.py:31` in `step`, range `decode_token`, kernel `gemm`: 98 % of this cost."""
    parts = []
    if one.file:
        spot = one.file.removeprefix(folder) + (f":{one.line}" if one.line else "")
        parts.append(escape.code(escape.middle(spot, escape.NAME_LIMIT)))
    if function := named_function(one):
        parts.append(f"{'in ' if one.file else ''}{escape.code(function)}")
    head = [" ".join(parts)] if parts else []
    named = (loop.name, loop.nvtx_path) if loop and (head or one.kernel) else ()
    if one.nvtx and one.nvtx not in named:
        head.append(f"range {escape.code(one.nvtx)}")
    if one.kernel:
        head.append(f"kernel {escape.code(one.kernel)}")
    if one.operator:
        ran = f"operator {escape.code(escape.middle(one.operator, escape.NAME_LIMIT))}"
        of = f"{'of' if one.backward else 'in'} {escape.code(one.module)}" if one.module else ""
        head.append(" ".join(filter(None, (ran, "in the backward pass" if one.backward else "", of))))
    elif one.backward:
        head.append("in the backward pass")
    text = ", ".join(head) or "not recorded"
    return text if one.share is None or one.share > 0.995 else f"{text}: {pct(one.share)} of this cost"


def first(finding: Finding, folder: str, loop: Loop | None) -> str:
    """The first place of a finding, and how many others there are."""
    others = places(finding) - 1
    more = f" and {plural(others, 'other place')}" if others > 0 else ""
    return f"{place(finding.where[0], folder, loop)}{more}"
