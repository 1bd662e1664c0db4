"""Logs of nvidia-smi: the state of each GPU at moments of a run, into `smi_sample`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest.rows import append
from gpudiag.ingest.smi import capabilities
from gpudiag.ingest.smi.layout import Layout, Reading, of_header
from gpudiag.ingest.smi.lines import lines
from gpudiag.ingest.smi.samples import Samples
from gpudiag.tracing import stage

AGAIN = (
    "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,memory.total,clocks.sm,clocks.max.sm,"
    "clocks_event_reasons.active --format=csv -l 1"
)
MOST_READINGS, MOST_GPUS = 3_000_000, 256
"""Limits on what is kept of a log, far above what a run needs: beyond them its file is none, or of another purpose."""

_HALF_DAY_NS, _DAY_NS = 43_200_000_000_000, 86_400_000_000_000
_CLOSE, _OFTEN = 0.2, 0.2
"""Lines of several GPUs come in bursts: a fifth of the distances are below a fifth of the usual one."""


class _Gpu(NamedTuple):
    """GPU of a log: its position among them, its number, and its name where the log has it."""

    position: int
    number: int
    name: str | None


@dataclass(slots=True)
class _Log:
    """State of a log while it is read."""

    gpus: dict[str, _Gpu] = field(default_factory=dict)
    times: dict[str, list[int]] = field(default_factory=dict)
    """Moments of the lines that do not say which GPU they are of, by their key."""
    found: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    readings: int = 0
    skipped: int = 0
    example: str = ""
    cut: bool = False
    first: int | None = None
    last: int | None = None
    days: int = 0


def read(file: Path, con: duckdb.DuckDBPyConnection, shown: Path, name: str) -> None:
    """Add one log to the store. Raises GpudiagError where it holds no reading, or does not tell GPUs apart."""
    con.execute("begin")
    try:
        with stage("read nvidia-smi's log"):
            _fill(file, con, shown, name)
    except BaseException:
        con.execute("rollback")
        raise
    con.execute("commit")


def _fill(file: Path, con: duckdb.DuckDBPyConnection, shown: Path, name: str) -> None:
    log = _Log()
    own, first = _next(con, "input"), _next(con, "device")
    samples = Samples(con)
    for reading in _readings(file, shown, log):
        time = None if reading.time is None or log.first is None else reading.time - log.first
        samples.add(time, first + log.gpus[reading.key].position, log.readings - 1, reading.values)
    samples.flush()
    _refuse(log, shown)
    append(
        con, "input", ("id", "kind", "producer", "file", "clock_offset_ns"), [(own, "smi", "nvidia-smi", name, None)]
    )
    gpus = [(first + gpu.position, own, gpu.number, gpu.name) for gpu in log.gpus.values()]
    append(con, "device", ("id", "input", "ordinal", "name"), gpus)
    append(con, "capability", ("input", "name", "state", "how"), capabilities.of_log(own, log.found))
    if text := _left_out(log):
        con.execute("insert into diagnostic values (null, 'left_out', ?)", [f"{name}: {text}"])


def _readings(file: Path, shown: Path, log: _Log) -> Iterator[Reading]:
    """Yield the readings in their order, and note in `log` what else the lines hold."""
    layout: Layout | None = None
    for line, ended in lines(file, shown):
        stripped = line.strip()
        if not stripped or (layout and stripped == layout.header):
            continue
        if not ended:  # nvidia-smi ends each line: this one was cut, maybe within a number
            log.cut = True
            continue
        if layout and (reading := layout.reading(stripped)):
            yield _noted(reading, layout, shown, log)
        elif new := of_header(line):
            layout = new
            log.columns |= {what for _, what in new.columns}
        elif not (layout and stripped.startswith("#")):  # units below a header of dmon
            log.skipped += 1
            log.example = log.example or stripped
    # A file that ends within its header has said nothing yet.


def _noted(reading: Reading, layout: Layout, shown: Path, log: _Log) -> Reading:
    log.readings += 1
    log.found.update(reading.values)
    if reading.key not in log.gpus:
        taken = {gpu.number for gpu in log.gpus.values()}
        index = reading.index if reading.index is not None and reading.index not in taken else len(log.gpus)
        log.gpus[reading.key] = _Gpu(len(log.gpus), index, reading.name)
    if log.readings > MOST_READINGS or len(log.gpus) > MOST_GPUS:
        most = f"{MOST_READINGS:,} readings" if log.readings > MOST_READINGS else f"{MOST_GPUS} GPUs"
        raise GpudiagError(
            f"{shown}: a log of nvidia-smi with more than {most} is not read; give the lines from the time of the run,"
            " with the header before them."
        )
    if reading.time is None:
        return reading
    time = reading.time + log.days * _DAY_NS
    if not layout.dated and log.last is not None and time < log.last - _HALF_DAY_NS:  # past midnight
        log.days, time = log.days + 1, time + _DAY_NS
    log.first, log.last = time if log.first is None else log.first, time
    if layout.identity is None:
        log.times.setdefault(reading.key, []).append(time)
    return reading if time == reading.time else Reading(reading.key, reading.index, reading.name, time, reading.values)


def _refuse(log: _Log, shown: Path) -> None:
    if not log.columns:
        raise GpudiagError(
            f"{shown}: this log of nvidia-smi holds none of the fields that gpudiag reads, such as utilization.gpu or"
            f" clocks.sm; record `{AGAIN}` beside the program."
        )
    if not log.readings:
        why = f"its first line is: {_plain(log.example)}" if log.example else "nothing follows its header"
        raise GpudiagError(
            f"{shown}: this log of nvidia-smi holds no reading ({why}); record `{AGAIN}` while the program runs."
        )
    if any(_in_bursts(times) for times in log.times.values()):
        raise GpudiagError(
            f"{shown}: the lines of several GPUs stand in this log of nvidia-smi, and none says which GPU it is of;"
            " record again with `index` among the fields of --query-gpu."
        )


def _in_bursts(times: list[int]) -> bool:
    """Return whether moments come in groups, as where each GPU has a line of its own."""
    apart = sorted(abs(after - before) for before, after in pairwise(times))
    usual = apart[len(apart) * 9 // 10] if len(apart) > 2 else 0
    return sum(one < _CLOSE * usual for one in apart) > _OFTEN * len(apart)


def _left_out(log: _Log) -> str:
    said = []
    if log.skipped:
        lines_are = "line that is" if log.skipped == 1 else "lines that are"
        said.append(f"{log.skipped:,} {lines_are} no reading of nvidia-smi, the first: “{_plain(log.example)}”")
    if log.cut:
        said.append("its last line, which has no end and may be cut off")
    return ", and ".join(said)


def _plain(text: str) -> str:
    """Return a line of a file as the part of a sentence: short, and nothing that a page could take for markup."""
    return " ".join(re.sub(r"[^\w .,:;/()%+-]", " ", text[:200], flags=re.ASCII).split())[:100]


def _next(con: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(con.execute(f'select coalesce(max(id) + 1, 0) from "{table}"').fetchall()[0][0])
