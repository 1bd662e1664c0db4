"""Sizes as people write them, for the cache and for memory alike."""

from __future__ import annotations

import pytest

from gpudiag.text import parse


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("2GB", 2 * 10**9), ("1.5 gb", 1_500_000_000), ("1GiB", 2**30), ("800M", 800 * 10**6), ("7", 7)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse.size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "2XB", "1e9", "2 GB 3", "٣GB"])
def test_what_is_no_size(text: str) -> None:
    assert parse.size(text) is None
