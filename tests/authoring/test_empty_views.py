"""Views that stay empty are filled once for all cases that have the same rows where the view reads."""

from __future__ import annotations

from gpudiag.authoring.empty_views import EmptyViews

STORED = {
    "waits": "create view waits as select id from sync where long(id) -- gpu_op",
    "waited": "create view waited as select * from waits join through using (id)",
}
OTHERS = {
    "long": "create macro long(x) as (select count(*) > x from nvtx_range)",
    "through": "create view through as select id from py_sample",
}


def test_a_view_is_known_by_the_rows_of_all_that_it_reads() -> None:
    memo = EmptyViews(STORED, OTHERS)
    rows = {"sync": 1, "nvtx_range": 2, "py_sample": 3, "gpu_op": 4}
    key = memo.key("waits", rows)
    memo.note_empty(key)
    assert memo.is_empty(key)
    assert memo.key("waits", rows | {"gpu_op": 5, "py_sample": 5}) == key  # a comment reads nothing
    for table in ("sync", "nvtx_range"):  # itself, and through a macro
        assert not memo.is_empty(memo.key("waits", rows | {table: 9}))
        assert not memo.is_empty(memo.key("waits", {name: rows[name] for name in rows if name != table}))


def test_an_empty_view_stands_for_all_that_it_read() -> None:
    memo = EmptyViews(STORED, OTHERS)
    without = memo.key("waited", {"sync": 1, "py_sample": 3})
    assert memo.key("waited", {"sync": 2, "py_sample": 3}) == without
    assert memo.key("waited", {"sync": 2, "py_sample": 4}) != without  # through a view that is not stored
    assert memo.key("waited", {"waits": 7, "py_sample": 3}) != without
