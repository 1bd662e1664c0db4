"""Logs of nvidia-smi, as its commands and shells write them. Inputs without a capture's name are synthetic."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.smi import lines, reader
from gpudiag.store.database import create
from paths import CAPTURES

HEADER = "timestamp, index, name, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W]"
ROW = "2026/01/03 15:36:{:02}.500, {}, NVIDIA H200, {} %, 1980 MHz, 71.06 W"
DMON = (
    "# gpu    pwr  gtemp  mtemp     sm    mem   pclk  pviol  tviol     fb\n"
    "# Idx      W      C      C      %      %    MHz      %   bool     MB\n"
)


def log(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *rows, ""])


def read(folder: Path, content: str | bytes, name: str = "smi.csv") -> duckdb.DuckDBPyConnection:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    con = create(small=True)
    ingest(file, con, folder)
    return con


def values(con: duckdb.DuckDBPyConnection, field: str) -> list[Any]:
    rows = con.execute("select value from smi_sample where field = ? order by device, reading", [field]).fetchall()
    return [value for (value,) in rows]


def left_out(con: duckdb.DuckDBPyConnection) -> list[str]:
    return [text for (text,) in con.execute("select text from diagnostic where severity = 'left_out'").fetchall()]


def states(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(con.execute("select name, state from capability").fetchall())


def test_a_query_log_becomes_samples_of_each_gpu(tmp_path: Path) -> None:
    con = read(tmp_path, log(ROW.format(0, 0, 3), ROW.format(0, 1, 97), ROW.format(1, 0, 4), ROW.format(1, 1, 98)))
    assert con.execute("select kind, producer, file, clock_offset_ns from input").fetchall() == [
        ("smi", "nvidia-smi", "smi.csv", None)
    ]
    assert con.execute("select ordinal, name from device order by id").fetchall() == [
        (0, "NVIDIA H200"), (1, "NVIDIA H200")
    ]  # fmt: skip
    assert values(con, "utilization.gpu") == [3, 4, 97, 98]
    assert con.execute("select distinct unit from smi_sample where field = 'clocks.sm'").fetchall() == [("MHz",)]
    assert con.execute("select max(time) from smi_sample").fetchall() == [(1_000_000_000,)]
    assert states(con)["smi_clocks"] == "recorded" and states(con)["smi_link"] == "not_recorded"
    assert left_out(con) == []


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: lzma.compress(text.encode()),
    ],
    ids=["utf-16", "utf-16 without its mark", "utf-8 with a mark", "Windows", "xz"],
)
def test_any_shell_may_have_written_it(tmp_path: Path, encoded: Any) -> None:
    con = read(tmp_path, encoded(log(ROW.format(0, 0, 3), ROW.format(1, 0, 97))))
    assert values(con, "utilization.gpu") == [3, 97] and left_out(con) == []


def test_what_nvidia_smi_cannot_say_is_no_value(tmp_path: Path) -> None:
    rows = [ROW.format(0, 0, 3).replace("1980 MHz", word) for word in ("[N/A]", "[Unknown Error]", "[Not Supported]")]
    con = read(tmp_path, log(*rows))
    assert values(con, "utilization.gpu") == [3, 3, 3] and values(con, "clocks.sm") == []
    assert states(con)["smi_clocks"] == "not_recorded" and left_out(con) == []


def test_error_lines_and_a_cut_end_are_left_out_and_named(tmp_path: Path) -> None:
    error = "Unable to determine the device handle for GPU 0000:4A:00.0: GPU is lost. `<b>`"
    text = (
        log(ROW.format(0, 0, 3), error, HEADER, error, ROW.format(1, 0, 97)) + "2026/01/03 15:36:02.500, 0, NVIDIA H2"
    )
    con = read(tmp_path, text)
    assert values(con, "utilization.gpu") == [3, 97]
    (said,) = left_out(con)
    assert said.startswith("smi.csv: 2 lines that are no reading of nvidia-smi, the first: “Unable to determine")
    assert (
        said.endswith("”, and its last line, which has no end and may be cut off")
        and "<" not in said
        and "`" not in said
    )


def test_values_that_cannot_be_are_none(tmp_path: Path) -> None:
    rows = [ROW.format(0, 0, cell) for cell in ("255", "1e400", "-3", "9" * 40, "nan", "\N{FULLWIDTH DIGIT SEVEN}")]
    con = read(tmp_path, log(*rows, ROW.format(1, 0, 50)))
    assert values(con, "utilization.gpu") == [50]
    assert len(values(con, "clocks.sm")) == 2  # a percentage of 255 takes no other field with it


def test_units_may_be_left_out_but_not_be_others(tmp_path: Path) -> None:
    plain = "2026/01/03 15:36:00.500, 0, NVIDIA H200, 3, 1980, 71.06"
    con = read(tmp_path, log(plain, plain.replace("71.06", "71.06 kW")))
    assert values(con, "power.draw") == [71.06]


def test_a_mask_of_reasons_becomes_each_of_them(tmp_path: Path) -> None:
    head = "timestamp, utilization.gpu [%], clocks_throttle_reasons.active"
    con = read(tmp_path, log("2026/01/03 15:36:00.500, 99 %, 0x0000000000000024", header=head))
    found = dict(con.execute("select field, value from smi_sample where field like 'clocks_event%'").fetchall())
    active = {name.partition(".")[2] for name, value in found.items() if value}
    assert active == {"sw_power_cap", "sw_thermal_slowdown"} and len(found) == 6


def test_dmon_with_and_without_times(tmp_path: Path) -> None:
    row = "    0    690     70     68     {}     40   1410      0      -  10000\n"
    con = read(tmp_path, DMON + row.format(97) + DMON + row.format(98), "dmon.log")
    assert values(con, "utilization.gpu") == [97, 98] and values(con, "memory.used") == [10000, 10000]
    assert con.execute("select distinct time from smi_sample").fetchall() == [(None,)]
    assert states(con)["smi_power"] == "recorded" and left_out(con) == []
    timed = DMON.replace("# gpu", "#Time        gpu").replace("# Idx", "#HH:MM:SS    Idx")
    con = read(tmp_path, timed + " 23:59:59" + row.format(97) + " 00:00:01" + row.format(98), "timed.log")
    assert con.execute("select max(time) from smi_sample").fetchall() == [(2_000_000_000,)]


def test_dmon_as_csv(tmp_path: Path) -> None:
    con = read(tmp_path, "#gpu, pwr, sm, pclk\n#Idx, W, %, MHz\n0, 690, 97, 1410\n1, 80, 0, 345\n")
    assert values(con, "clocks.sm") == [1410, 345] and left_out(con) == []


def test_gpus_that_cannot_be_distinguished_are_refused(tmp_path: Path) -> None:
    head = "timestamp, utilization.gpu [%]"
    rows = [f"2026/01/03 15:36:{second:02}.{500 + gpu}, 50 %" for second in range(9) for gpu in range(2)]
    with pytest.raises(GpudiagError, match=r"smi\.csv: the lines of several GPUs .* record again with `index`"):
        read(tmp_path, log(*rows, header=head))
    con = read(tmp_path, log(*rows[::2], header=head))
    assert len(values(con, "utilization.gpu")) == 9


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (log(), "holds no reading (nothing follows its header)"),
        (log("GPU is lost"), "holds no reading (its first line is: GPU is lost)"),
        (log("2026/01/03 15:36:00.500, P0, 30 %", header="timestamp, pstate, fan.speed [%]"), "none of the fields"),
        (log(HEADER + ", power.limit [W]" * 2000), "line 2 has more than 16,384 characters"),
        (log(ROW.format(0, 0, 3) + ", 1 W" * 1_000_000), "line 2 has more than 16,384 characters"),
    ],
    ids=["header only", "errors only", "other fields", "a wide header", "a million columns"],
)
def test_what_holds_nothing_is_refused_in_a_sentence(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(GpudiagError) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path / 'smi.csv'}: ") and words in str(error.value)
    assert "\n" not in str(error.value)


def test_more_than_a_log_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_READINGS", 3)
    monkeypatch.setattr(reader, "MOST_GPUS", 2)
    with pytest.raises(GpudiagError, match="more than 3 readings is not read"):
        read(tmp_path, log(*[ROW.format(second, 0, 3) for second in range(4)]))
    with pytest.raises(GpudiagError, match="more than 2 GPUs is not read"):
        read(tmp_path, log(*[ROW.format(0, gpu, 3) for gpu in range(3)]))
    monkeypatch.setattr(lines, "MOST_BYTES", 100)
    with pytest.raises(GpudiagError, match="more than 0 MiB is not read"):
        read(tmp_path, log(ROW.format(0, 0, 3)))


@pytest.mark.capture
def test_real_logs_of_both_commands_agree(tmp_path: Path) -> None:
    """The captures' own logs, of one program recorded twice on two GPUs."""
    folder = CAPTURES / "ddp_slow_rank"
    by_query, by_dmon = create(small=True), create(small=True)
    ingest(folder / "smi.csv.xz", by_query, tmp_path)
    ingest(folder / "dmon.txt.xz", by_dmon, tmp_path)
    for con in (by_query, by_dmon):
        assert left_out(con) == [] and len(con.execute("from device").fetchall()) == 2
        assert max(values(con, "clocks.sm")) == 1980 and 0 < max(values(con, "utilization.gpu")) <= 100
    capped = "clocks_event_reasons.sw_power_cap"
    assert max(values(by_query, capped)) == 1 and max(values(by_dmon, "violation.power")) > 0
