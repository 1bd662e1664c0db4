"""Which columns a rule's sentence states, found in its template."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.model import Rule
from gpudiag.text.stated import choosing, stated, summed

RULE = Rule.model_validate({
    "code": "H01", "kind": "hygiene", "id": "x", "title": "t", "query": "q", "message": "m", "why": "w",
    "not_a_problem_when": "n", "what": "x", "params": {"limit": {"value": 4096, "unit": "bytes", "why": "y"}},
})  # fmt: skip
ROW: dict[str, Any] = {"kernel": "gemm", "ns": 1000, "size": 4096, "queued": True, "names": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("It takes 1.00 µs.", set()),
        ("{{ places[0].kernel|code }} takes {{ total.ns|dur }}", {"kernel", "ns"}),
        ("{{ (places[0].ns / places[0].size)|num }} a byte", {"ns", "size"}),
        ("{{ places|map(attribute='kernel')|unique|join }}", {"kernel"}),
        ("{{ (places|max(attribute='ns')).kernel }}", {"kernel"}),
        ("{{ places|selectattr('queued')|list|length }} wait", set()),
        ("{{ places|length|plural('place') }}", {"places"}),
        ("{{ params.limit|bytes }} in {{ loop.name }} {{ per }}", set()),
        ("{% for place in places %}{{ place.kernel }}{% endfor %}", {"kernel"}),
        ("{% for name in places[0].names %}{{ name|code }} {{ loop.index }}{% endfor %}", {"names"}),
        ("{% if places[0].queued %}{{ places[0].ns }}{% else %}{{ places[0].size }}{% endif %}", {"ns"}),
        ("{% if places[0].ns > 5000 %}long{% elif places[0].ns > 500 %}{{ places[0].size }}{% endif %}", {"size"}),
        ("{{ (places[0].ns if places[0].queued else places[0].size)|num }}", {"ns"}),
        ("{{ (places[0].ns|dur if not places[0].queued else 'no time') }}", set()),
        ("{{ (places|first).kernel }} {{ places[0]['size'] }}", {"kernel", "size"}),
    ],
)
def test_a_sentence_states_the_columns_it_prints(text: str, columns: set[str]) -> None:
    assert stated(text, RULE, [ROW]) == columns


def test_columns_that_choose_the_words_are_known() -> None:
    text = "{% if places[0].queued and total.ns > 3 %}{{ 'a' if places[0].kernel else 'b' }}{% endif %}"
    assert choosing(text) == {"queued", "ns", "kernel"}
    assert stated(text, RULE, [ROW]) == set()


def test_sums_are_not_the_worst_place_s_figures() -> None:
    assert summed("{{ total.ns|dur }} and {{ places[0].size }}") == {"ns"}
