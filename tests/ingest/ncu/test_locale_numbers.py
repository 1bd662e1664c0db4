"""Reading numbers back gives the numbers that a locale wrote."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.ingest.ncu import locale_numbers
from gpudiag.ingest.ncu import units as ncu_units
from gpudiag.ingest.ncu.locale_numbers import MixedNotation, Notation, PageKind

LOCALES = {
    "en_US": Notation(".", ","),
    "de_DE": Notation(",", "."),
    "fr_FR": Notation(",", " "),
    "fr_FR, no-break space": Notation(",", "\u00a0"),
    "fr_FR, narrow space": Notation(",", "\u202f"),
    "de_CH": Notation(".", "’"),
    "C": Notation(".", ""),
}


def written(value: float, notation: Notation, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text.translate({ord(","): notation.group, ord("."): notation.decimal})


def read(texts: list[str], page: PageKind = "details", units: str = "") -> list[float | None]:
    """The values of a page whose cells are `texts`, the notation found from the cells themselves."""
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(locale_numbers.tidy(pl.col("text")))
    found = locale_numbers.notation(locale_numbers.shapes(frame["text"]), page) or Notation()
    power = pl.lit(ncu_units.exponent(units), pl.Int32)
    return frame.select(locale_numbers.number(pl.col("text"), power, found, page))["text"].to_list()


@given(
    st.sampled_from(sorted(LOCALES)),
    st.lists(st.integers(0, 10**12), min_size=1),
    st.lists(st.integers(0, 10**12).map(lambda hundredths: hundredths / 100)),
)
def test_a_details_page_in_any_locale_reads_back(locale: str, counts: list[int], ratios: list[float]) -> None:
    notation = LOCALES[locale]
    cells = [written(n, notation, 0) for n in counts] + [written(x, notation, 2) for x in ratios]
    assert read(cells) == [float(n) for n in counts] + ratios


@given(
    st.sampled_from(["en_US", "de_DE", "fr_FR"]),
    st.lists(st.integers(10**3, 10**12), min_size=1),
    st.lists(st.integers(0, 10**13).map(lambda millionths: millionths / 10**6)),
)
def test_a_raw_page_mixes_local_integers_with_pointed_decimals(
    locale: str, counts: list[int], values: list[float]
) -> None:
    cells = [written(n, LOCALES[locale], 0) for n in counts]
    found = locale_numbers.notation(locale_numbers.shapes(pl.Series(cells)), "raw")
    assert found is not None
    cells += [f"{x:.6f}" for x in values]
    frame = pl.DataFrame({"text": cells})
    read_back = frame.select(locale_numbers.number(pl.col("text"), pl.lit(0), found, "raw"))["text"].to_list()
    assert read_back == [float(n) for n in counts] + values


def test_the_file_decides_what_a_lone_separator_means() -> None:
    assert read(["8.644", "46,55"]) == [8644.0, 46.55]
    assert read(["8,644", "46.55"]) == [8644.0, 46.55]
    assert read(["8.644"], "raw") == [8644.0]  # neither page prints three decimals
    assert read(["0,97", "1.024"]) == [0.97, 1024.0]


def test_numbers_of_two_locales_are_refused() -> None:
    with pytest.raises(MixedNotation):
        read(["83,14", "83.14"])


def test_words_lists_and_missing_values_are_no_numbers() -> None:
    assert read(["CachePreferNone", "nan", "no data", "", "(32, 32, 1)", "0,1,2", "1.50"]) == [None] * 6 + [1.5]
    assert read(["12.50 (10; 15)"]) == [12.5]  # instance values in brackets


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("4.789792", "msecond", 4_789_792.0),
        ("56.06", "us", 56_060.0),
        ("30.86", "ms", 30_860_000.0),
        ("77792", "ns", 77_792.0),
        ("1.00", "second", 1e9),
        ("1.59", "Ghz", 1.59e9),
        ("1.535017", "cycle/nsecond", 1_535_017_000.0),
        ("584998877.44", "hz", 584_998_877.44),
        ("32.768", "Kbyte", 32_768.0),
        ("1.02", "Kbyte/block", 1_020.0),
        ("31.494031", "Gbyte/second", 31_494_031_000.0),
        ("3.14", "Tbyte/s", 3.14e12),
        ("534.469973", "Kbyte/second", 534_469.973),
        ("27.364863", "sector/usecond", 27_364_863.0),
        ("83.14", "%", 83.14),
        ("51", "register/thread", 51.0),
        ("22", "SM", 22.0),
        ("7", "pass", 7.0),
        ("16", "thread", 16.0),
    ],
)
def test_units_become_base_units_to_the_last_digit(text: str, unit: str, value: float) -> None:
    notation = Notation()
    frame = pl.DataFrame({"text": [text]})
    power = pl.lit(ncu_units.exponent(unit), pl.Int32)
    assert frame.select(locale_numbers.number(pl.col("text"), power, notation, "raw"))["text"].to_list() == [value]
