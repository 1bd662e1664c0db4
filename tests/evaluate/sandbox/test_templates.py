"""Titles and messages that would reach Python, files, or the end of the user's patience."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.text import template_rows
from gpudiag.text.templating import TemplateProblem, compile_template, render
from untrusted import rule

RULE = rule("select 1 as a", params={"limit": 4096})
ROWS = [{"k": "gemm", "ns": 1, "l": [1, 2], "s": {"x": 1}}] * 40

ESCAPES = [
    "{{ ''.__class__ }}", "{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ places.__class__ }}",
    "{{ places._all }}", "{{ places[0]._all }}", "{{ places[0].__init__.__globals__ }}",
    "{{ places|attr('__class__') }}",
    "{{ places|map(attribute='__class__')|list }}", "{{ places|map(attribute='_all')|list }}",
    "{{ places|map('attr', '__class__')|list }}", "{{ places|sort(attribute='__class__') }}",
    "{{ places|groupby('__class__') }}", "{{ '{0.__class__}'.format(places) }}", "{{ '%s'|format(places) }}",
    "{{ 'x'.join }}", "{{ places.append }}", "{{ places[0].items() }}", "{{ places[0].keys }}", "{{ total.keys }}",
    "{{ params.limit.as_integer_ratio }}", "{{ lipsum }}", "{{ lipsum.__globals__ }}", "{{ cycler('a') }}",
    "{{ joiner() }}", "{{ namespace() }}", "{{ dict() }}", "{{ range(10) }}", "{{ self }}", "{{ self._context }}",
    "{{ caller }}", "{{ super }}", "{{ varargs }}", "{{ _('x') }}", "{{ config }}", "{{ request }}",
    "{{ environment }}",
    "{% include '/etc/passwd' %}", "{% import '/etc/passwd' as o %}", "{% from 'os' import path %}",
    "{% extends '/etc/passwd' %}", "{% set a = 1 %}", "{% set a %}x{% endset %}", "{% block a %}{% endblock %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% call m() %}{% endcall %}",
    "{% filter upper %}x{% endfilter %}",
    "{% with a = 1 %}{% endwith %}", "{% autoescape true %}x{% endautoescape %}", "{% do 1 %}", "{% debug %}",
    "{% break %}",
    "{% trans %}x{% endtrans %}", "{% for p in places recursive %}{{ loop(places) }}{% endfor %}",
    "{% for p in places %}{{ loop.__class__ }}{% endfor %}", "{% for p in places %}{{ loop._iterable }}{% endfor %}",
    "{% for p in places %}{{ loop.cycle('a') }}{% endfor %}", "{% for p in places %}{{ loop.changed(1) }}{% endfor %}",
    "{{ 'a' ~ 'b' }}", "{{ 'a' + 'b' }}", "{{ places + places }}", "{{ places|map(attribute=places)|list }}",
    "{{ [1, 2] }}", "{{ {'a': 1} }}", "{{ (1, 2) }}", "{{ 5 % 2 }}", "{{ 5 // 2 }}", "{{ +1 }}",
    "{{ places[0] }}", "{{ places }}", "{{ places[0].s }}", "{{ places|max(attribute='ns') }}",
]  # fmt: skip
BLOW_UPS = [
    "{{ 'x' * 10**10 }}", "{{ 'x' * 10000000000 }}", "{{ 9 ** 9 ** 9 }}", "{{ 10 ** 1000000 }}",
    "{{ '%9999999d' % 1 }}",
    "{{ places * 1000000000 }}", "{{ 'x'|center(1000000000) }}", "{{ 'x'|indent(1000000000) }}",
    "{{ 'x'|wordwrap(1) }}",
    "{{ 'x'|replace('x', 'xx') }}", "{{ 'x'|ljust(10) }}", "{{ 'x'|urlize }}", "{{ 'x'|tojson }}",
    "{{ places|pprint }}",
    "{{ places|batch(1000000000)|list }}", "{{ places|slice(1000000000)|list }}", "{{ 'x'|string }}",
    "{{ 'x'|truncate }}",
    "{% for i in range(10**9) %}x{% endfor %}", "{% for a in places %}{% for b in places %}x{% endfor %}{% endfor %}",
    "{% for p in places %}" + "x" * 3000 + "{% endfor %}", "{{ 1|round(1000000000, 'ceil') }}", "{{ 1|round(-5) }}",
    "{{ " + "(" * 1900 + "1" + ")" * 1900 + " }}", "{{ " + "1+" * 1900 + "1 }}", "{{ " + "-" * 3900 + "1 }}",
    "{{ " + "not " * 900 + "1 }}", "{% if 1 %}" * 200 + "{% endif %}" * 200, "{{ places" + ".a" * 900 + " }}",
    "{{ places" + "[0]" * 900 + " }}", "{{ 1 " + "and 1 " * 600 + "}}", "x" * 4001, "{{ '" + "x" * 4001 + "' }}",
    "{{ " * 1000, "{% " * 1000, "{# " * 1000, "{{ '\\x' }}",
    "{{ " + "*".join(["9" * 900] * 4) + "*" + "9" * 300 + "*" + "9" * 99 + "*1" * 400 + " }}",
    "{{ (" + "9" * 1900 + "*" + "9" * 1900 + "*1e9) }}",
    "{{ places|join(places) }}", "{{ places|sum(attribute='k') }}", "{{ places|sum(start='x') }}", "{{ places|dur }}",
    "{{ -places }}", "{{ total.ns / 0 }}", "{{ 1 is divisibleby 0 }}", "{{ 'zz'|dur }}", "{{ places[10**9].k }}",
]  # fmt: skip


@pytest.mark.parametrize("text", ESCAPES)
def test_nothing_but_the_rows_can_be_reached(text: str) -> None:
    with pytest.raises(TemplateProblem):
        render(text, RULE, ROWS)


@pytest.mark.parametrize("text", BLOW_UPS, ids=lambda text: text[:60])
def test_nothing_takes_long_or_much(text: str) -> None:
    with pytest.raises(TemplateProblem):
        render(text, RULE, ROWS)


@pytest.mark.parametrize("filters", ["|list", "|first", "|map('list')"])
def test_a_long_chain_of_filters_is_not_compiled(filters: str) -> None:
    """Jinja takes the third power of its length: 250 took a quarter of a minute."""
    with pytest.raises(TemplateProblem, match="nested more than 30 levels"):
        compile_template("{{ places" + filters * 250 + "|length }}")


def test_filters_stop_when_they_have_had_too_much_to_do() -> None:
    with pytest.raises(TemplateProblem, match="filters go through more than"):
        render("{% for p in places %}" + "{{ places|sort(attribute='k')|length }}" * 90 + "{% endfor %}", RULE, ROWS)


@pytest.mark.parametrize("depth", [300, 900, 50_000])
def test_what_is_deep_is_not_followed(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    assert render("{{ places|length }} {{ places[0].v|length }}", RULE, [{"v": value}]) == "1 1"
    with pytest.raises(TemplateProblem):
        render("{{ places[0].v }}", RULE, [{"v": value}])


def test_what_is_wide_is_not_read() -> None:
    """Forty rows of thirty columns of a hundred thousand numbers, of which the sentence names none."""
    wide = {f"c{n}": [[[0] * 50] * 50] * 50 for n in range(30)}
    text = "{% for p in places %}{{ p.c1|length }},{% endfor %}{{ places[0].c2[0]|length }}"
    assert render(text, RULE, [wide] * 40) == "50," * 40 + "50"


def test_few_filters_over_many_rows_are_enough_for_a_message() -> None:
    text = (
        "{% for p in places %}{{ p.k|code }} {{ p.ns|dur }} {{ p.l|sum }} {{ p.l|length|plural('op') }}. {% endfor %}"
    )
    assert render(text, RULE, ROWS * 25).count("`gemm` 1 ns 3 2 ops.") == template_rows.MAX_REACH


def test_compiling_is_not_tried_again_for_each_row() -> None:
    compile_template.cache_clear()
    for _ in range(50):
        render("{{ places|length }}", RULE, ROWS)
    assert compile_template.cache_info().misses == 1
