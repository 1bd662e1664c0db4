"""Where nothing repeats, no rule that can fire speaks of an iteration or a step."""

from __future__ import annotations

import re

from gpudiag.text.iteration_words import of_run
from timelines import library

TEXTS = ("title", "headline", "message", "why", "question", "check", "not_a_problem_when")
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
RULES = [
    rule for rule in library().rules
    if rule.kind == "finding" and rule.about != "job" and not {"iterations", "kernel_profiles"} & set(rule.requires)
]  # fmt: skip


def test_a_rule_speaks_of_the_run() -> None:
    texts = [(rule.code, of_run(EXPRESSION.sub("", getattr(rule, name) or ""))) for rule in RULES for name in TEXTS]
    assert [text for text in texts if re.search(r"\b(iterations?|steps?)\b", text[1], re.IGNORECASE)] == []


def test_advice_that_needs_an_iteration_is_left_out() -> None:
    assert of_run("It is slow. Give the time with --iteration-time. Look.") == "It is slow. Look."
