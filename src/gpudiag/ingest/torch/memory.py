"""Memory of a trace: what PyTorch's allocator gave out and took back, and what it held after each change.

These events are few and have keys of their own, one of which differs from a key of copies in its capital only. So they
are looked for in the lists that were cut out, and read by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpudiag.ingest.sources.base import quoted
from gpudiag.ingest.torch.staging import nanoseconds
from gpudiag.ingest.torch.trace import Trace

TEMPORARY = ("torch_memory",)

_NAME = b'"[memory]"'
_CHUNK = 4 << 20
_LONGEST = 4096
"""Bytes of one event, several times over."""
_CUDA = 1
"""PyTorch's number for the kind of device."""

_KEYS = {
    "address": "Addr", "bytes": "Bytes", "kind": "Device Type", "number": "Device Id", "allocated": "Total Allocated",
    "reserved": "Total Reserved",
}  # fmt: skip


def read_memory(trace: Trace, parts: Sequence[Path]) -> None:
    """Fill `memory_event` from the lists of events, where their changes come with totals. Devices must be known."""
    trace.found["memory_event"] = trace.found["memory_change"] = 0
    if not parts:
        return
    file = parts[0].with_name("memory.json")
    try:
        with file.open("wb") as sink:
            for part in parts:
                sink.writelines(event + b"\n" for event in _events(part))
        if file.stat().st_size:
            _fill(trace, file)
    finally:
        file.unlink(missing_ok=True)


def _events(part: Path) -> Iterator[bytes]:
    """Give the text of each event of memory: an object with one other inside, which holds numbers only."""
    with part.open("rb") as source:
        text, begin = b"", 0
        while chunk := source.read(_CHUNK):
            text += chunk
            # What begins before this is in the text as a whole.
            until = max(len(text) - _LONGEST, begin)
            yield from _named(text, begin, until)
            kept = max(until - _LONGEST, 0)
            text, begin = text[kept:], until - kept
        yield from _named(text, begin, len(text))


def _named(text: bytes, begin: int, until: int) -> Iterator[bytes]:
    """Give the events whose name stands here."""
    at = text.find(_NAME, begin)
    while 0 <= at < until:
        start, end = text.rfind(b"{", 0, at), text.find(b"}", at) + 1
        if 0 <= text.find(b"{", at) < end:
            end = text.find(b"}", end) + 1
        if 0 <= start < end <= start + _LONGEST:
            yield text[start:end].replace(b"\n", b" ")
        at = text.find(_NAME, at + 1)


def _fill(trace: Trace, file: Path) -> None:
    con = trace.con
    keys = ", ".join(f'"{key}" VARCHAR' for key in _KEYS.values())
    taken = ", ".join(f'try_cast(args."{key}" as bigint) as {name}' for name, key in _KEYS.items())
    columns = f"{{name:'VARCHAR', ts:'VARCHAR', tid:'VARCHAR', args:'STRUCT({keys})'}}"
    con.execute(
        f"""
        create or replace temp table torch_memory as
        select row_number() over () as position, {nanoseconds("ts")} - {trace.origin} as time, tid, {taken}
        from read_json({quoted(str(file))}, format = 'newline_delimited', columns = {columns}, ignore_errors = true)
        where name = '[memory]'
        """
    )
    usable = f"kind = {_CUDA} and bytes <> 0 and time is not null"
    ((changes, stated, unusable),) = con.execute(
        f"""
        select count(*) filter ({usable}), count(*) filter ({usable} and allocated >= 0),
               count(*) filter (kind = {_CUDA} and time is null)
        from torch_memory
        """
    ).fetchall()
    trace.dropped += unusable
    trace.found["memory_change"], trace.found["memory_event"] = changes, stated
    con.execute(
        f"""
        insert into memory_event by name
        select m.time, {trace.process} as process, d.id as device, t.thread,
               case when m.bytes > 0 then 'allocate' else 'free' end as op, 'pool' as kind, abs(m.bytes) as bytes,
               m.address, m.allocated, m.reserved
        from torch_memory m join torch_device d on d.number = m.number left join torch_thread t on t.tid = m.tid
        where {usable} and m.allocated >= 0 order by m.time, m.position
        """
    )
