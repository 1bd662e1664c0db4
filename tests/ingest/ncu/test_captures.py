"""The project's own captures: both pages of one report must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.packed import page, plain
from gpudiag.ingest.ncu import reader
from gpudiag.store import database
from paths import CAPTURES

pytestmark = pytest.mark.capture

PAIRS = sorted(CAPTURES.glob("*/*.details.csv.xz"))


def profiles(path: Path) -> tuple[list[tuple[object, ...]], dict[tuple[int, str], float]]:
    """The launches of a page, and its numeric metrics by (launch, name)."""
    con = database.create(small=True)
    reader.read(plain(path), con)
    launches = con.execute(
        "select id, name, cc, grid, block, process, stream from kernel_profile order by id"
    ).fetchall()
    metrics = con.execute("select profile, metric, value from kernel_metric where value is not null").fetchall()
    return launches, {(at, name): value for at, name, value in metrics}


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_details_and_raw_page_agree_within_rounding(path: Path) -> None:
    launches, details = profiles(path)
    same_launches, raw = profiles(page(path.with_name(path.name.replace(".details.csv.xz", ".raw.csv"))))
    assert launches == same_launches
    named = {key: value for key, value in details.items() if not key[1].startswith("label:")}
    assert len(named) > 50 * len(launches)
    assert not set(named) - set(raw)
    # Details values have two decimals of an auto-scaled unit (1.02 Kbyte); sentences have one decimal.
    off = {
        key: (value, raw[key]) for key, value in named.items() if value != pytest.approx(raw[key], rel=6e-3, abs=0.051)
    }
    assert not off
