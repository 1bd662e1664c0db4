"""Files of cProfile: real ones, and bytes that are none."""

from __future__ import annotations

import cProfile
import marshal
import math
import pickle
import pstats
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from evaluation.packed import recording
from gpudiag import pipeline
from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.cprofile import marshalled, stats
from gpudiag.ingest.decompress import unpack
from gpudiag.ingest.file_kind import detect
from gpudiag.options import Options
from gpudiag.report import markdown
from gpudiag.store.database import create
from paths import CAPTURES

F, G = ("a.py", 1, "f"), ("~", 0, "<built-in method len>")


def profile(folder: Path) -> Path:
    """A profile that Python itself writes: a sum of squares, and what it calls."""
    recorder, file = cProfile.Profile(), folder / "own.pstats"
    recorder.runcall(lambda: sum(math.sqrt(len(str(n))) for n in range(200)))
    recorder.dump_stats(file)
    return file


def read(folder: Path, content: bytes) -> duckdb.DuckDBPyConnection:
    file = folder / "a.pstats"
    file.write_bytes(content)
    con = create(small=True)
    ingest(file, con, folder)
    return con


def dumped(functions: dict[Any, Any], version: int = 4) -> bytes:
    return marshal.dumps(functions, version)


def agrees(file: Path) -> None:
    theirs: dict[Any, Any] = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    ours = stats.functions(file.read_bytes())
    assert ours.keys() == theirs.keys()
    for key, (_, calls, self_s, cumulative_s, callers) in theirs.items():
        assert ours[key][:3] == (calls, self_s, cumulative_s)
        assert ours[key].callers == {caller: figures[2] for caller, figures in callers.items()}


@pytest.mark.capture
def test_it_reads_what_python_reads(tmp_path: Path) -> None:
    agrees(profile(tmp_path))
    agrees(unpack(CAPTURES / "game_of_life_small" / "slow.pstats.xz", "xz", tmp_path))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_the_format(tmp_path: Path, version: int) -> None:
    one = {F: (1, 2, 0.5, 1.5, {}), G: (1 << 40, 1 << 40, 1.0, 1.0, {F: (3, 3, 0.25, 0.25)})}
    con = read(tmp_path, dumped(one, version))
    rows = con.execute("select file, line, function, calls, self_ns, callers, callers_ns from cpu_function order by id")
    assert rows.fetchall() == [
        ("a.py", 1, "f", 2, 500_000_000, [], []),
        ("~", 0, "<built-in method len>", 1 << 40, 1_000_000_000, [0], [250_000_000]),
    ]


def test_a_profile_in_pure_python_counts_callers_only(tmp_path: Path) -> None:
    con = read(tmp_path, dumped({F: (1, 1, 0.5, 0.5, {}), G: (3, 3, 1.0, 1.0, {F: 3})}))
    assert con.execute("select callers, callers_ns from cpu_function where id = 1").fetchall() == [([0], [0])]


BAD: dict[str, tuple[bytes, str]] = {
    "cut": (dumped({F: (1, 1, 0.5, 0.5, {}), G: (3, 3, 1.0, 1.0, {F: (1, 1, 0.1, 0.1)})})[:-30], "it is cut off"),
    "no function": (dumped({}), "holds no function"),
    "a list of figures": (dumped({F: [1, 1, 0.5, 0.5, {}]}), "something else than functions"),
    "too few figures": (dumped({F: (1, 1, 0.5, {})}), "not those of a profile"),
    "a negative count": (dumped({F: (1, -1, 0.5, 0.5, {})}), "a count in it cannot be"),
    "a count without end": (dumped({F: (1, 1 << 4000, 0.5, 0.5, {})}), "a count in it cannot be"),
    "no time": (dumped({F: (1, 1, math.nan, 0.5, {})}), "a time in it cannot be"),
    "an endless time": (dumped({F: (1, 1, 0.5, math.inf, {})}), "a time in it cannot be"),
    "a name without end": (dumped({("a" * 10_000, 1, "f"): (1, 1, 0.5, 0.5, {})}), "more than 4,096 bytes"),
    "code": (dumped({F: (1, 1, 0.5, 0.5, compile("1", "a", "exec"))}), "something else than functions"),
    "a name that is a number": (dumped({(7, 1, "f"): (1, 1, 0.5, 0.5, {})}), "a name in it is no text"),
    "something behind it": (dumped({F: (1, 1, 0.5, 0.5, {})}) + b"N", "something else follows"),
    "a tuple of two thousand million": (b"{)\x03\xda\x01ai\x01\0\0\0\xda\x01f(" + b"\xff\xff\xff\x7f", "not those of"),
    "a text of two thousand million": (b"{)\x03u\xff\xff\xff\x7fab", "more than 4,096 bytes"),
    "a text of less than nothing": (b"{)\x03u\xff\xff\xff\xffab", "it is cut off"),
    "a reference to nowhere": (b"{)\x03r\x07\0\0\0i", "refers to what is not in it"),
}


@pytest.mark.parametrize(("content", "words"), BAD.values(), ids=BAD.keys())
def test_what_is_no_profile_is_refused_in_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(GpudiagError) as error:
        read(tmp_path, content)
    said = str(error.value)
    assert said.startswith(f"{tmp_path / 'a.pstats'}: this profile of cProfile ") and words in said
    assert "python -m cProfile -o FILE.pstats PROGRAM" in said and "\n" not in said


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    file = tmp_path / "a.pstats"
    file.write_bytes(pickle.dumps({F: (1, 1, 0.5, 0.5, {})}, 4))
    with pytest.raises(GpudiagError, match="this is a Python pickle"):
        detect(file)


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "MOST_FUNCTIONS", 1)
    with pytest.raises(GpudiagError, match="more than 1 functions"):
        read(tmp_path, dumped({F: (1, 1, 0.5, 0.5, {}), G: (3, 3, 1.0, 1.0, {})}))
    monkeypatch.setattr(stats, "MOST_BYTES", 10)
    with pytest.raises(GpudiagError, match="more than 0 MiB is not read"):
        read(tmp_path, dumped({F: (1, 1, 0.5, 0.5, {})}))


def _flipped(content: bytearray, random: Random) -> None:
    content[random.randrange(1, len(content))] = random.randrange(256)


def _overwritten(content: bytearray, random: Random) -> None:
    at = random.randrange(1, len(content))
    content[at : at + 4] = struct.pack("<i", random.choice((-1, 1 << 30, 255, 0)))


def _shortened(content: bytearray, random: Random) -> None:
    del content[random.randrange(1, len(content)) :]


@pytest.mark.parametrize("damage", [_flipped, _overwritten, _shortened])
def test_damage_is_a_profile_or_a_refusal(tmp_path: Path, damage: Callable[[bytearray, Random], None]) -> None:
    """Whatever happens to a byte: functions of the right types, or one kind of error."""
    content, random = profile(tmp_path).read_bytes(), Random(7)
    refused = 0
    for _ in range(300):
        changed = bytearray(content)
        damage(changed, random)
        try:
            for (file, line, name), about in stats.functions(bytes(changed)).items():
                assert isinstance(file, str) and isinstance(line, int) and isinstance(name, str)
                assert about.calls >= 0 and math.isfinite(about.self_s) and about.cumulative_s >= 0
        except marshalled.NoProfile:
            refused += 1
    assert refused > 100


@pytest.mark.slow
def test_a_profile_alone_names_functions_and_no_price(tmp_path: Path) -> None:
    pairs = ("/src/train.py", 12, "pairs")
    figures = {
        pairs: (9000, 9000, 5.0, 8.0, {}),
        ("/src/train.py", 1, "<module>"): (1, 1, 2.0, 10.0, {}),
        ("~", 0, "<built-in method math.dist>"): (99, 99, 3.0, 3.0, {pairs: (99, 99, 3.0, 3.0)}),
    }
    file = tmp_path / "a.pstats"
    file.write_bytes(dumped(figures))
    report = pipeline.explain([file], Options(cached=False))
    (finding,) = report.findings
    assert [(place.file, place.line, place.function) for place in finding.where] == [
        pairs, ("/src/train.py", 1, "<module>")
    ]  # fmt: skip
    assert finding.gain.kind == "test_needed" and finding.gain.before_ms is None
    assert report.verdict.state == "problems" and "only a timeline tells" in report.verdict.text
    assert "`pairs` takes 80 % (8.00 s in 9,000 calls)" in markdown.render(report)


@pytest.mark.capture
def test_beside_a_timeline_a_busy_gpu_asks_for_no_function(tmp_path: Path) -> None:
    timeline = recording(CAPTURES / "healthy_two_stream_pipeline" / "healthy")
    report = pipeline.explain([timeline, profile(tmp_path)], Options(cached=False))
    assert [one.kind for one in report.inputs] == ["nsys", "cprofile"]
    assert "H11" in report.clear and report.verdict.state == "healthy"
