"""Small samples of every kind of input, cut from the project's captures; reading one takes a fraction of a second."""

from __future__ import annotations

import json
import lzma
import pstats
import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from fuzz import judge
from fuzz.generators import rulefolders
from fuzz.generators.sqlite_names import EVENTS, columns, quoted, tables
from fuzz.given import random_of

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "fixtures" / "captures"
EXPORTS = (
    "item_every_stage/slow", "ddp_one_bucket/slow.rank0", "ddp_one_bucket/slow.rank1", "healthy_graph_decode/healthy",
    "chunked_pipeline/slow-pageable", "managed_memory_pingpong/slow", "loader_and_item/slow-item",
    "alloc_free_per_step/slow", "jax_callback_every_step/slow", "dependent_gather/slow", "rollout_eager/slow",
    "healthy_two_stream_pipeline/healthy", "row_reduction_one_block/slow", "empty_cache_every_step/slow",
)  # fmt: skip
PAGES = (
    "reduction/slow-atomic",
    "column_sums/slow",
    "stencil_spills/slow",
    "healthy_stream_triad/healthy",
    "float64_literals/slow",
)
TRACES = ("elementwise_chain/fixed", "elementwise_chain/slow", "rollout_eager/slow", "loader_without_workers/fixed")
LOGS = ("ddp_slow_rank", "healthy_graph_decode")
PROFILES = ("game_of_life_small/slow",)
READINGS = 120  # lines that are kept of a log of nvidia-smi
FUNCTIONS = 200  # that are kept of a profile of cProfile
CALLS = 300  # of the CUDA API that are kept of an export
LAUNCHES = 6  # that are kept of a page
TIMED = 3000  # that are kept of a trace
LOOSE = (
    "OSRT_CALLCHAINS",
    "SCHED_EVENTS",
    "COMPOSITE_EVENTS",
    "SAMPLING_CALLCHAINS",
    "CUDA_CALLCHAINS",
    "TARGET_INFO_SYSTEM_ENV",
    "CALLCHAIN",
)
"""Tables that are large and that only details hang on: a few rows of them will do."""

TOML = b"""\
missing = "ignore"

[budgets.longest]
iteration_time = "4.2 ms"
idle = "15 %"
launches = 420

[budgets."*"]
compute = "1 %"

[findings]
fail_on = "high"
max_gain = "10 %"
allow = ["S02"]
baseline = "known.json"

[[findings.suppress]]
code = "S01"
place = "train.py"
reason = "the loss is printed on purpose"
until = 2027-03-31
"""


def unpacked(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def small_export(content: bytes, calls: int = CALLS) -> bytes:
    """The middle of an export: some hundred CUDA calls, and what happened meanwhile."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        con.deserialize(content)
        con.text_factory = bytes
        names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in _names(con)]
        runtime = "CUPTI_ACTIVITY_KIND_RUNTIME"
        for table in names:
            if table.startswith(LOOSE):
                con.execute(f"delete from {quoted(table)} where rowid > (select min(rowid) + 40 from {quoted(table)})")
        if runtime in names:
            starts = [
                row[0] for row in con.execute(f"select start from {runtime} where typeof(start) = 'integer' order by 1")
            ]
            if len(starts) > calls:
                first = len(starts) // 2 - calls // 2
                _keep(con, [table for table in names if table in EVENTS], starts[first], starts[first + calls - 1])
        _drop_strings(con, names)
        con.execute("vacuum")
        return con.serialize()


def _names(con: sqlite3.Connection) -> list[Any]:
    return [
        row[0]
        for row in con.execute("select name from sqlite_master where type = 'table' and sql like 'create table%'")
    ]


def _keep(con: sqlite3.Connection, events: list[str], low: int, high: int) -> None:
    for table in events:
        have = [row[1].decode() for row in con.execute(f"pragma table_info({quoted(table)})")]
        if {"start", "end"} <= set(have) and not table.startswith("PROFILER"):
            con.execute(f'delete from {quoted(table)} where start > {high} or coalesce("end", start) < {low}')
            if table == "OSRT_API":
                con.execute(f"delete from {quoted(table)} where rowid > (select min(rowid) + 150 from {quoted(table)})")


def _drop_strings(con: sqlite3.Connection, names: list[str]) -> None:
    """Only names that something still refers to."""
    if "StringIds" not in names:
        return
    used: set[int] = set()
    for table in names:
        for row in con.execute(f"pragma table_info({quoted(table)})").fetchall():
            column = row[1].decode()
            if table != "StringIds" and column not in ("start", "end", "timestamp"):
                name = quoted(column)
                found = con.execute(
                    f"select distinct {name} from {quoted(table)} where typeof({name}) = 'integer' limit 5000"
                )
                used.update(value for (value,) in found)
    con.executemany(
        "delete from StringIds where id = ?",
        [(i,) for (i,) in con.execute("select id from StringIds") if i not in used],
    )


def small_page(content: bytes) -> bytes:
    """The first launches of an ncu page."""
    lines = content.split(b"\n")
    head = lines[:1]
    first: list[bytes] = []
    ids: dict[bytes, None] = {}
    for line in lines[1:]:
        ids[line.split(b",")[0]] = None
        if len(ids) > LAUNCHES + 1:
            break
        first.append(line)
    return b"\n".join(head + first)


def small_trace(content: bytes) -> bytes:
    """The first events of a trace of torch.profiler, and all that is no event of time."""
    stated = json.loads(content)
    events = stated["traceEvents"]
    timed = sorted((one for one in events if one.get("ph") == "X"), key=lambda one: float(one["ts"]))
    stated["traceEvents"] = [*(one for one in events if one.get("ph") == "M"), *timed[:TIMED]]
    return json.dumps(stated).encode()


def small_profile(content: bytes, file: Path) -> None:
    """Write the first functions of a profile of cProfile, which the project itself recorded."""
    file.write_bytes(content)
    kept: Any = pstats.Stats(str(file))
    kept.stats = dict(list(kept.stats.items())[:FUNCTIONS])
    kept.dump_stats(file)


def parquet_folder(export: bytes, folder: Path) -> None:
    """An export as the folder that `nsys export --type=parquetdir` writes, of types that fit."""
    import polars as pl

    folder.mkdir()
    with closing(sqlite3.connect(":memory:")) as con:
        con.deserialize(export)
        for table in tables(con):
            names = columns(con, table)
            rows = con.execute(f"select * from {quoted(table)}").fetchall()
            if rows:
                data = {name: pl.Series(name, [row[at] for row in rows], strict=False) for at, name in enumerate(names)}
                pl.DataFrame(data).write_parquet(folder / f"{table}.parquet")


def made_up_report(random: Random) -> bytes:
    """The frame of a .ncu-rep: a header, then blocks that state their length. What is in them is noise."""

    def varint(value: int) -> bytes:
        made = bytearray()
        while value > 127:
            made.append(value & 127 | 128)
            value >>= 7
        return bytes((*made, value))

    blocks = []
    for _ in range(3):
        payload = random.randbytes(200)
        head = b"\x08\x01\x10\x02" + b"\x28" + varint(len(payload))
        blocks.append(len(head).to_bytes(4, "little") + head + payload)
    return b"NVR\x00" + (2).to_bytes(4, "little") + b"\x08\x07" + b"".join(blocks)


def make(folder: Path, corpus: Path | None, few: bool) -> None:
    """Write every sample below the folder, a folder a kind. Run by a process of its own: it starts threads."""
    for kind in ("exports", "pages", "parquet", "reports", "baselines", "ncu-rep", "traces", "smi", "cprofile"):
        (folder / kind).mkdir()
    from evaluation.packed import page, plain, stored  # numpy starts threads

    for name in EXPORTS[: 5 if few else None]:
        content = plain(stored(CAPTURES / name)).read_bytes()
        (folder / "exports" / f"{name.replace('/', '.')}.sqlite").write_bytes(small_export(content))
    for name in PAGES[: 2 if few else None]:
        for kind in ("raw", "details"):
            made = small_page(plain(page(CAPTURES / f"{name}.{kind}.csv")).read_bytes())
            (folder / "pages" / f"{name.replace('/', '.')}.{kind}.csv").write_bytes(made)
    for name in TRACES[: 2 if few else None]:
        made = small_trace(plain(stored(CAPTURES / f"{name}.pt.trace")).read_bytes())
        (folder / "traces" / f"{name.replace('/', '.')}.json").write_bytes(made)
    for name in LOGS[: 1 if few else None]:
        for log in ("smi.csv", "dmon.txt"):
            made = b"".join(unpacked(CAPTURES / name / f"{log}.xz").splitlines(keepends=True)[:READINGS])
            (folder / "smi" / f"{name}.{log}").write_bytes(made)
    for name in PROFILES:
        small_profile(
            unpacked(CAPTURES / f"{name}.pstats.xz"), folder / "cprofile" / f"{name.replace('/', '.')}.pstats"
        )
    (folder / "ncu-rep" / "made-up.ncu-rep").write_bytes(made_up_report(random_of("ncu-rep")))
    if corpus:
        _from_corpus(folder, corpus)
    for export in sorted((folder / "exports").iterdir())[: 2 if few else 4]:
        parquet_folder(export.read_bytes(), folder / "parquet" / export.stem)
    _reports(folder, 2 if few else 6, 1 if few else 3)
    _sound(folder)


def _from_corpus(folder: Path, corpus: Path) -> None:
    for path in sorted(corpus.iterdir()):
        if path.suffix == ".sqlite":
            try:
                (folder / "exports" / path.name).write_bytes(small_export(path.read_bytes()))
            except sqlite3.Error:
                print(f"fuzz: {path.name} is left out: SQLite cannot cut it", file=sys.stderr)
        elif path.suffix == ".csv" and b"Kernel Name" in path.read_bytes()[:5000]:
            (folder / "pages" / path.name).write_bytes(small_page(path.read_bytes()))
        elif path.suffix == ".ncu-rep":
            (folder / "ncu-rep" / path.name).write_bytes(path.read_bytes())


def _reports(folder: Path, exports: int, pages: int) -> None:
    """Return gpudiag's reports on some of the samples, saved as JSON, and the findings as a baseline."""
    from datetime import date

    from gpudiag import pipeline
    from gpudiag.gate import baseline as baselines
    from gpudiag.gate import check
    from gpudiag.gate.config import Config
    from gpudiag.library import load as library
    from gpudiag.report import json_format

    rules = library.load()
    for path in [*sorted((folder / "exports").iterdir())[:exports], *sorted((folder / "pages").iterdir())[:pages]]:
        report = pipeline.explain([path])
        (folder / "reports" / f"{path.stem}.json").write_text(json_format.render(report))
        known = rules.setting_values, rules.budget_parts
        baseline = check.updated_baseline(report, Config(), None, *known, date(2026, 1, 1))
        (folder / "baselines" / f"{path.stem}.json").write_text(baselines.text(baseline))


def _sound(folder: Path) -> None:
    """Return gpudiag's answer on each sample as it is, by the sample's name."""
    from gpudiag import pipeline
    from gpudiag.errors import GpudiagError
    from gpudiag.report import json_format

    said: dict[str, Any] = {}
    for path in [*sorted((folder / "exports").iterdir()), *sorted((folder / "pages").iterdir())]:
        with suppress(GpudiagError):
            said[path.name] = asdict(judge.said_of(json.loads(json_format.render(pipeline.explain([path])))))
    (folder / "sound").mkdir()
    (folder / "sound" / "sound.json").write_text(json.dumps(said))


Samples = dict[str, list[tuple[str, dict[str, bytes]]]]
"""Kind → samples, each a name and its files."""


def load(folder: Path) -> Samples:
    """Every sample in memory, in an order that does not change."""
    found: Samples = {}
    for kind in sorted(folder.iterdir()):
        found[kind.name] = []
        for path in sorted(kind.iterdir()):
            files = (
                {file.name: file.read_bytes() for file in sorted(path.iterdir())}
                if path.is_dir()
                else {path.name: path.read_bytes()}
            )
            found[kind.name].append((path.stem, files))
    found["rules"] = [("mine", dict(rulefolders.FILES))]
    found["config"] = [("config", {"gpudiag.toml": TOML})]
    return found


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2] else None, json.loads(sys.argv[3]))
