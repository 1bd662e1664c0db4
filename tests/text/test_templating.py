"""How figures and traced names are written, and what a template may not do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.model import Rule
from gpudiag.text.format import byte_size, code, dur, num, pct, plural
from gpudiag.text.templating import TemplateProblem, render

RULE = Rule.model_validate({
    "code": "H01", "kind": "hygiene", "id": "x", "title": "t", "query": "q", "message": "m", "why": "w",
    "not_a_problem_when": "n", "what": "x", "params": {"limit": {"value": 4096, "unit": "bytes", "why": "y"}},
})  # fmt: skip


def said(text: str, *rows: dict[str, Any], loop: dict[str, Any] | None = None) -> str:
    return render(text, RULE, rows or ({"k": "gemm", "ns": 1000, "bytes": 4096},), loop)


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (999.6, "1.00 µs"), (12_300, "12.3 µs"), (1_070_000, "1.07 ms"),
     (999_600, "1.00 ms"), (5.1e9, "5.10 s"), (1.234e12, "1,234 s"), (None, "unknown")],
)  # fmt: skip
def test_durations_have_three_digits(ns: float | None, text: str) -> None:
    assert dur(ns) == text


@given(st.floats(min_value=1, max_value=1e12))
def test_durations_are_never_four_digits_below_seconds(ns: float) -> None:
    figure, unit = dur(ns).split(" ")
    assert unit == "s" or len(figure.replace(".", "")) <= 3


def test_sizes_shares_and_counts() -> None:
    assert [byte_size(n) for n in (512, 4096, 37.5 * 2**20, 2**30)] == ["512 B", "4.0 KiB", "37.5 MiB", "1.0 GiB"]
    assert [pct(n) for n in (0, 0.0004, 0.034, 0.0996, 0.72)] == ["0 %", "< 0.1 %", "3.4 %", "10 %", "72 %"]
    assert [pct(n) for n in (0.994, 0.9968, 0.99999, 1, 1.2)] == ["99 %", "99.7 %", "99.9 %", "100 %", "120 %"]
    assert [num(n) for n in (3, 12345, 3.14159, 7.8)] == ["3", "12,345", "3.1", "7.8"]
    assert (plural(1, "copy", "copies"), plural([1, 2], "place")) == ("1 copy", "2 places")


def test_messages_see_places_totals_params_and_loop() -> None:
    text = "{{ places|length }} {{ places[0].k }} {{ total.ns|dur }} {{ params.limit|bytes }} {{ loop.name }}"
    rows = ({"k": "gemm", "ns": 1000, "loop": 7}, {"k": "b", "ns": None, "loop": 7})
    assert said(text, *rows, loop={"name": "train"}) == "2 `gemm` 1.00 µs 4.0 KiB `train`"


HOSTILE = "a`b|c\n# x\x1b[31m\u202e<!-- @all"


@pytest.mark.parametrize(
    "text", ["{{ places[0].k }}", "{{ places[0].k|code }}", "{{ places|map(attribute='k')|join(', ') }}"]
)
def test_traced_names_cannot_leave_their_code_span(text: str) -> None:
    written = said(text, {"k": HOSTILE})
    assert written == "`a'b¦c # x [31m <!-- @all`"


@given(st.text())
def test_a_code_span_is_one_line_with_two_backticks(name: str) -> None:
    written = code(name)
    assert written == "(unnamed)" or written.count("`") == 2
    assert not any(ord(character) < 32 or character in "|\x7f\u202e\u2066" for character in written)


@pytest.mark.parametrize(
    "text",
    [
        "{{ nope }}",
        "{{ places[0].nope }}",
        "{{ places.__class__ }}",
        "{{ 'a' * 1000000000 }}",
        "{{ '%9999999d' % 1 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ range(10) }}",
        "{{ places[0].k.ljust(1000000000) }}",
        "{{ 'x'|center(1000000000) }}",
        "{% for a in places %}{% for b in places %}x{% endfor %}{% endfor %}",
        "{% include '/etc/passwd' %}",
        "{% set a = 1 %}",
        "{{ total.ns / 0 }}",
        "{{ unfinished",
    ],
)
def test_templates_cannot_do_more_than_speak(text: str) -> None:
    with pytest.raises(TemplateProblem):
        said(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ places[0].items }}",
        "{{ places[0]['items'] }}",
        "{{ places|map(attribute='keys')|join }}",
        "{{ places.append }}",
        "{{ places[0].k.upper }}",
        "{{ 1|round(1000000000, 'ceil') }}",
        "{{ 1|round(-1000000000) }}",
        "{{ 'x'|join('x') }}" * 1000,
        "{{ " + "(" * 1900 + "1" + ")" * 1900 + " }}",
        "{% for p in places %}" + "x" * 3000 + "{% endfor %}",
    ],
)
def test_templates_see_keys_only_and_stay_short(text: str) -> None:
    with pytest.raises(TemplateProblem):
        said(text, *[{"k": "gemm", "ns": 1}] * 40)


def test_a_column_may_be_called_like_a_method() -> None:
    assert said("{{ places[0].items }}", {"items": 3}) == "3"


def test_templates_count_all_places_but_reach_only_the_first() -> None:
    rows = [{"ns": 1, "ops": list(range(1000))}] * 9_999
    text = "{{ places|length }} {{ total.ns }} {{ places[0].ops|length }} {{ places[0].ops|sum }}"
    assert said(text, *rows) == "9999 9999 1000 1225"
    assert said("{% for p in places %}{{ loop.index }}{% if not loop.last %},{% endif %}{% endfor %}", *rows) == (
        ",".join(map(str, range(1, 51)))
    )
