"""Kinds of slices on a timeline in words, in the order of their legend. The style sheet gives each a look."""

from __future__ import annotations

import re

from gpudiag.model.vocabulary import BUDGET
from gpudiag.report.html.markup import asset

WORDS = {
    "mark": "a finding points here",
    "idle_mark": "idle time that its fix could remove",
    "cold_start": "before what is analysed",
    "steady_state": "what is analysed",
    "teardown": "after it",
    "warm_up": "warm-up iteration",
    "iteration": "iteration",
    "drawn": "drawn by itself",
    "range": "NVTX range",
    "launch": "launch",
    "wait": "wait",
    "copy_call": "copy or set",
    "memory": "allocate or free",
    "call": "other call",
    "kernel": "kernel",
    "graph": "CUDA graph",
    "communication": "exchange between GPUs",
    "to_gpu": "copy to the GPU",
    "to_host": "copy to the host",
    "copy": "copy within or between GPUs",
    "set": "memory set",
    "now": "an iteration now",
    "fixed": "after the fix",
    "interval": "where the new time probably lies",
}
GPU = {key: words.label for key, words in BUDGET.items()}
GAIN = {
    "saved": "what the fix would save",
    "now": "what remains",
    "interval": "where the new time probably ends",
}
ALL = {**WORDS, **GPU}
ORDER = tuple(ALL)


def colours() -> dict[str, str]:
    """The colour that the style sheet gives each kind on a light ground, for drawings outside the page."""
    style = asset("page.css")
    named = dict(re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6})", style))
    found: dict[str, str] = {}
    for selectors, fill in re.findall(r"^(\.k-[^{]+) \{ fill: ([^;]+); \}$", style, re.MULTILINE):
        colour = re.search(r"var\(--([a-z-]+)\)|(#[0-9a-f]{6})", fill)
        if colour:
            found |= dict.fromkeys(re.findall(r"\.k-([a-z_]+)", selectors), colour[2] or named[colour[1]])
    return found
