"""nvidia-smi beside a recording: a shell script that prints lines as the driver 550 does stands for it."""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpudiag.capture.session import capture
from gpudiag.cli import main
from gpudiag.errors import GpudiagError
from paths import CAPTURES
from recorders import MARK, assert_nothing_left, nsys, plan, until

HEADER = (
    "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], clocks.current.sm [MHz],"
    " clocks.max.sm [MHz], power.draw [W], enforced.power.limit [W], temperature.gpu, clocks_event_reasons.active"
)
LINE = (
    "2026/03/04 10:00:00.000, 0, NVIDIA H200, 99 %, 900 MiB, 143771 MiB, 1200 MHz, 1980 MHz, 699.00 W, 700.00 W, 60,"
    " 0x0000000000000004"
)
HELP = (
    "timestamp", "index", "name", "utilization.gpu", "memory.used", "memory.total", "clocks.sm", "clocks.max.sm",
    "power.draw", "enforced.power.limit", "temperature.gpu", "clocks_event_reasons.active",
)  # fmt: skip
SMI = """#!/bin/sh
if [ "$1" = --help-query-gpu ]; then echo '{help}'; exit 0; fi
echo "$*" >> {log}
{body}
"""
SAMPLES = f"echo '{HEADER}'\nwhile :; do echo '{LINE}'; sleep 0.01; done\n"


def smi(place: Path, body: str = SAMPLES, fields: tuple[str, ...] = HELP) -> None:
    file = place / "bin" / "nvidia-smi"
    listed = "\n".join(f'"{field}"\nSomething about it.' for field in fields)
    file.write_text(SMI.format(help=listed, log=place / "smi.log", body=body))
    file.chmod(0o755)


@pytest.mark.slow
def test_a_log_is_kept_beside_the_recording(place: Path) -> None:
    smi(place)
    captured = capture(plan(place, "sleep", "0.5"))
    assert captured is not None
    assert [file.name for file in captured.files] == ["report.sqlite", "smi.csv"]
    header, *readings = captured.files[1].read_text().splitlines()
    assert header == HEADER and len(readings) > 5 and readings[0] == LINE
    asked = (place / "smi.log").read_text()
    assert "clocks_event_reasons.active --format=csv -lms 200" in asked and "pcie" not in asked
    assert captured.explain_command().endswith("report.sqlite " + str(captured.files[1]))
    assert json.loads((place / "out" / "capture.json").read_text())["files"] == ["report.sqlite", "smi.csv"]
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.capture
def test_a_log_is_explained_with_the_timeline(place: Path) -> None:
    """The recording is a real one, the log made up: at the power limit throughout."""
    smi(place)
    (place / "exported").write_bytes(lzma.decompress((CAPTURES / "histogram" / "fixed.sqlite.xz").read_bytes()))
    words = ["--runs", "0", "--format", "json", "--", "sleep", "0.5"]
    done = CliRunner().invoke(main, ["capture", "-d", str(place / "out"), *words])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [item["kind"] for item in report["inputs"]] == ["nsys", "smi"]
    assert any("the power limit held the clock down" in note["text"] for note in report["notes"])


@pytest.mark.capture
def test_a_log_that_cannot_be_read_is_left_out(place: Path) -> None:
    smi(place, f"echo '{HEADER}'\nwhile :; do echo '2026/03/04 10:00:00.000, something else'; sleep 0.01; done\n")
    (place / "exported").write_bytes(lzma.decompress((CAPTURES / "histogram" / "fixed.sqlite.xz").read_bytes()))
    words = ["--runs", "0", "--format", "json", "--", "sleep", "0.5"]
    done = CliRunner().invoke(main, ["capture", "-d", str(place / "out"), *words])
    assert done.exit_code == 0, done.output
    assert [item["kind"] for item in json.loads(done.stdout)["inputs"]] == ["nsys"]
    assert "the log of nvidia-smi is left out: " in done.stderr


@pytest.mark.slow
def test_older_drivers_and_chosen_gpus(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,3")
    smi(place, fields=(*HELP[:-1], "clocks_throttle_reasons.active"))
    assert capture(plan(place, "sleep", "0.2")) is not None
    asked = (place / "smi.log").read_text()
    assert "clocks_throttle_reasons.active" in asked and "--id=1,3 " in asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "fields"),
    [("echo No devices were found; exit 6", HELP), ("exit 9", ()), (SAMPLES, HELP[3:])],
    ids=["no device", "fails", "another program"],
)
def test_an_nvidia_smi_that_fails_is_no_error(place: Path, body: str, fields: tuple[str, ...]) -> None:
    smi(place, body, fields)
    captured = capture(plan(place, "sleep", "0.2"))
    assert captured is not None
    assert [file.name for file in captured.files] == ["report.sqlite"]


@pytest.mark.slow
@pytest.mark.usefixtures("leftovers")
def test_nothing_samples_after_a_failure(place: Path) -> None:
    smi(place, f"sleep {MARK} &\n{SAMPLES}")
    nsys(place, "sleep 0.3; exit 3\n")
    with pytest.raises(GpudiagError, match="exit code 3"):
        capture(plan(place, "true"))
    assert_nothing_left(place)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_nothing_samples_after_a_signal(place: Path, number: int) -> None:
    """What is killed can end nothing itself: nvidia-smi ends with the pipe that it writes to."""
    smi(place, f"echo $$ > {place / 'pid'}\n{SAMPLES}")
    nsys(place, '"$@"\n')
    words = [sys.executable, "-m", "gpudiag", "capture", "-d", place / "out", "--runs", "0", "--", "sleep", "20"]
    running = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    until(lambda: (place / "pid").exists() and (place / "pid").read_text().endswith("\n"))
    running.send_signal(number)
    running.wait()
    until(lambda: not os.path.exists(f"/proc/{int((place / 'pid').read_text())}"))
