"""Hostile names, and synthetic reports that carry one of them everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import ValidationError

import samples
from gpudiag.model import Input, Kernel, Note, Place, Remedy, Report, Stall, Suppressed, Unevaluated, Verdict
from gpudiag.model.report import KernelUse, Selected, Whole

HARMLESS = "name"
NAMES = {
    "script": "</script><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "unclosed tag": "<img src=x onerror=alert(1) ",
    "style": "</style></title></textarea><svg/onload=alert(1)>",
    "details": "</summary></details><details open>",
    "entity": "&lt;script&gt; &#64;everyone &#x3c;b>",
    "mention": "@everyone",
    "mention of a team": "see @org/team, #12 and GH-12",
    "bar": "a|b",
    "escaped bar": "a\\|b\\",
    "one backtick": "a`b",
    "three backticks": "```\n@everyone\n```",
    "backticks of every length": "`a``b```c````",
    "command": "::error::pwned",
    "command on a line of its own": "x\n::error::pwned\n::stop-commands::t",
    "command of the older form": "##[error]pwned ##[add-mask]x",
    "command escaped": "%0A::error::x %0D%0A::set-output name=a::b %3A%2C%25",
    "comma and colon": "a,line=1,file=b::c",
    "comment": "<!-- -->",
    "our marker": "<!-- gpudiag -->",
    "end of a comment": "--> --!> -- >",
    "CDATA": "]]><x/>",
    "newlines": "a\nb\r\nc\rd\u2028e\u2029f\x85g\vh\fi",
    "carriage return": "\rgone",
    "right to left": "\u202egnp.exe\u2066\u2069\u200f",
    "zero width": "a\u200b\u200c\u200d\ufeff\u2060b",
    "terminal": "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "NUL": "a\x00b",
    "lone surrogates": "\ud800x\udfff",
    "expression": "${{ secrets.X }} {{ 7*7 }} {% raw %}",
    "shell": "$(touch x) `touch x` ; rm -rf /",
    "long": "x" * 10_000,
    "long with tags": "<b>" * 3_000,
    "nested templates": "std::array<" * 400 + "int" + ">" * 400,
    "script link": "javascript:alert(1)",
    "Markdown link": "[x](javascript:alert(1)) [y][z] <https://evil.example> https://evil.example www.evil.example",
    "image": "![x](http://evil.example/y.png)",
    "reference": "[decode.py]: http://evil.example",
    "SARIF link": "[line 44](1) [x](https://evil.example)",
    "heading": "# heading\n======\n---",
    "task": "\n- [x] done\n* [ ] open",
    "quote": "> quote\n1. one",
    "emphasis": "**bold** __init__ ~~gone~~ $x$ \\(x\\)",
    "empty": "",
    "spaces": "   ",
}


@cache
def report_of(name: str) -> Report:
    """A synthetic report in which the traced program named everything so, and a saved report says so everywhere."""
    base = samples.launch_bound()
    gain = samples.launch_bound_finding().gain
    places = (
        Place(file=f"/p/{name}", line=3, function=name, nvtx=name, kernel=name, share=0.5),
        Place(file=f"/p/{name}/decode.py", line=4, function=name, share=0.3),
        Place(nvtx=name, kernel=name, share=0.2),
    )
    said = f"{name} and `{name}` ran"
    remedy = Remedy(id=name, title=said, framework="any", text="Do this.")
    shared = {"title": said, "message": said, "remedies": (remedy,), "fingerprint": name, "confidence_reason": said}
    with_line = samples.launch_bound_finding(where=places, evidence={name: name, "names": (name,)}, **shared)
    kernel_only = samples.launch_bound_finding(
        rank=2, code="L01", where=(Place(kernel=name),), gain=gain.model_copy(update={"basis": "kernel"}), **shared
    )
    to_test = samples.launch_bound_finding(
        rank=3, code="L02", where=(), gain=gain.model_copy(update={"kind": "test_needed", "test": said}), **shared
    )
    kernel = Kernel(name=name, launches=1, duration_ms=1, facts={name: name}, stalls=_stalls(name))
    loop = base.run.loops[0].model_copy(update={"name": name, "nvtx_path": name, "budget": {"compute": 1.0, name: 0.1}})
    return base.model_copy(
        update={
            "inputs": (Input(kind="nsys", file=f"/p/{name}.sqlite", producer=name, producer_version=name),),
            "verdict": Verdict(state="problems", text=said),
            "run": base.run.model_copy(update={"loops": (loop,), "devices": (name,), "kernels": (kernel,)}),
            "findings": (with_line, kernel_only, to_test),
            "minor": (samples.launch_bound_finding(rank=4, code="M05", where=places, **shared),),
            "notes": (Note(code="Q01", title=said, text=said),),
            "suppressed": (Suppressed(code="S02", by="X01", reason=said),),
            "not_evaluated": (Unevaluated(code="K01", title=said, reason=said, hint=said),),
            "titles": dict.fromkeys(("S02", "M02", "A01"), said),
        }
    )


def _stalls(name: str) -> tuple[Stall, ...]:
    return (Stall(name=name, share=0.7, means=name, cure=name),)


@cache
def authored_by(name: str) -> Report:
    """A saved report that carries the name where rules and remedies have Markdown of their own."""
    text = f"{name}\n\nAfterwards {name}"
    finding = samples.launch_bound_finding(
        code=name,
        id=name,
        why=text,
        check=text,
        not_a_problem_when=text,
        question=name,
        remedies=(Remedy(id="bad", title="Fix it", framework="any", text=text),),
        references=(name, f"https://{name}", "https://example.com/"),
    )
    return samples.launch_bound().model_copy(update={"findings": (finding,), "minor": ()})


MEASURED = {
    "limit": "dram", "busy_pct": 91.0, "floor_ms": 0.5, "intensity": 3.0, "ridge": 10.0, "precision": "fp32",
    "dram_pct": 91.0, "theoretical_occupancy_pct": 50.0, "achieved_occupancy_pct": 40.0, "registers": 24,
    "warp_cycles_per_issue": 12.0, "active_share": 0.9,
}  # fmt: skip
AUTHORED = {"why", "check", "not_a_problem_when", "question", "references", "test"}
"""Keys of texts that are Markdown, beside those of remedies."""
Path = tuple[str | int, ...]


def whole() -> Any:
    """A saved report in which every key has a value."""
    base = report_of(HARMLESS)
    kernel = base.run.kernels[0].model_copy(
        update={"facts": MEASURED, "occupancy_limit": "registers", "grid": 4, "block": 128, "share_of_loop": 0.5}
    )
    limited = kernel.model_copy(update={"name": "other", "facts": {**MEASURED, "limit": "latency"}})
    uses = (KernelUse(name="kernel", launches=3, ms=1.0), KernelUse(name="rest", launches=2, ms=0.5, others=3))
    loops = tuple(loop.model_copy(update={"kernels": uses}) for loop in base.run.loops)
    run = base.run.model_copy(
        update={"kernels": (kernel, limited), "loops": loops, "programs": ("train",), "selection": SELECTED}
    )
    return base.model_copy(update={"run": run}).model_dump(mode="json")


SELECTED = Selected(
    text="a part", nvtx=("step",), processes=("train",), selected_ms=1.0,
    whole=Whole(span_ms=9.0, busy_share=0.5, gpus=1, gpu_ops=3, processes=1),
)  # fmt: skip


def texts(value: Any, place: Path = ()) -> Iterator[Path]:
    """Where strings stand in it."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(item, (*place, key))


def put(content: Any, place: Path, text: str) -> str:
    """Write another text at this place; returns the one that was there."""
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    before: str = holder[place[-1]]
    holder[place[-1]] = text
    return before


@cache
def free_texts() -> tuple[Path, ...]:
    """The places of a saved report that take any text, but for Markdown of rules and remedies."""
    content = whole()
    found = []
    for place in texts(content):
        if AUTHORED & set(place) or ("remedies" in place and place[-1] == "text"):
            continue
        before = put(content, place, "x")
        with suppress(ValidationError):
            Report.model_validate(content)
            found.append(place)
        put(content, place, before)
    return tuple(found)


@cache
def everywhere(name: str) -> Report:
    """A saved report with this text wherever one may stand."""
    content = whole()
    for place in free_texts():
        put(content, place, name)
    return Report.model_validate(content)
