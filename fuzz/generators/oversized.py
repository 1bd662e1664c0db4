"""Small files that would take a reader's memory or time: shared values, pages in circles, overlapping calls, a crowd.

Each is an export of some kilobytes by itself; the steps at the end do the same to a sample of the fuzzer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from random import Random

PAGE = 4096
RUNTIME, KERNEL, NVTX = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"
_PROCESS = (1 << 48) | (100 << 24)
_LOCAL = (PAGE - 12) * 32 // 255 - 23  # bytes of a long row that stay in its page
_TEXTS = ("cudaLaunchKernel_v7000", "cuLaunchKernel", "kernel", "step", "cudaDeviceSynchronize_v3020")
_SCHEMA = f"""
create table StringIds (id integer primary key, value text);
create table {RUNTIME} (start int, "end" int, globalTid int, correlationId int, nameId int, returnValue int);
create table {KERNEL} (start int, "end" int, deviceId int, contextId int, streamId int, correlationId int,
    globalPid int, demangledName int, shortName int,
    gridX int, gridY int, gridZ int, blockX int, blockY int, blockZ int);
create table {NVTX} (start int, "end" int, eventType int, globalTid int, textId int, text text);
create table TARGET_INFO_GPU (id int, name text, smCount int, cuDevice int);
create table META_DATA_CAPTURE (name text, value text);
insert into TARGET_INFO_GPU values (0, 'NVIDIA H100', 132, 0);
insert into META_DATA_CAPTURE values ('COLLECT_CUDA_TRACE', 'true');
"""


def export(
    calls: int = 200, lasts: int = 4_000, every: int = 10_000, names: int = 1, page: int = PAGE, more: str = ""
) -> bytes:
    """A loop of launches in one thread, each of its kernel. lasts: how long a call is said to take."""
    with closing(sqlite3.connect(":memory:")) as con:
        con.executescript(f"pragma page_size = {page};" + _SCHEMA + more)
        con.executemany("insert into StringIds values (?, ?)", enumerate(_TEXTS))
        rows = [(n, 1_000_000 + n * every) for n in range(calls)]
        con.executemany(
            f"insert into {RUNTIME} values (?, ?, ?, ?, ?, 0)",
            [(start, start + lasts, _PROCESS + 1, n, n % names) for n, start in rows],
        )
        con.executemany(
            f"insert into {KERNEL} values (?, ?, 0, 1, 7, ?, ?, 2, 2, 64, 1, 1, 128, 1, 1)",
            [(start + 3_000, start + 8_000, n, _PROCESS) for n, start in rows],
        )
        con.commit()
        return con.serialize()


def changed(content: bytes, *statements: str) -> bytes:
    """The export after some SQL. Raises sqlite3.Error."""
    with closing(sqlite3.connect(":memory:")) as con:
        con.deserialize(content)
        for statement in statements:
            con.execute(statement)
        con.commit()
        return con.serialize()


def overlapping(calls: int = 10_000, names: int = 1) -> bytes:
    """Every call of one thread is said to last a second, and the next begins 10 µs later."""
    return export(calls, lasts=10**9, names=names)


def crowd(tables: int = 100_000) -> bytes:
    """Very many tables, all without rows."""
    with closing(sqlite3.connect(":memory:")) as con:
        con.deserialize(export())
        con.execute("create table empty (a)")
        root = con.execute("select rootpage from sqlite_master where name = 'empty'").fetchone()[0]
        con.execute("pragma writable_schema = on")
        con.executemany(
            "insert into sqlite_master values ('table', ?, ?, ?, ?)",
            [(f"t{n}", f"t{n}", root, f"CREATE TABLE t{n} (a)") for n in range(tables)],
        )
        con.commit()
        return con.serialize()


def _root(content: bytes, table: str) -> int:
    with closing(sqlite3.connect(":memory:")) as con:
        con.deserialize(content)
        row = con.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()
        return int(row[0]) if row else 0


def _size(content: bytes) -> int:
    size = int.from_bytes(content[16:18], "big")
    return 65_536 if size == 1 else size


def _with(content: bytes, pages: Mapping[int, bytes]) -> bytes:
    """The file with some of its pages replaced, or further ones behind."""
    size = _size(content)
    last = max(len(content) // size, *pages)
    made = bytearray(content.ljust(last * size, b"\0"))
    for number, page in pages.items():
        made[(number - 1) * size : number * size] = page.ljust(size, b"\0")
    made[28:32] = last.to_bytes(4, "big")
    return bytes(made)


def _varint(number: int) -> bytes:
    made = [number & 127]
    while number := number >> 7:
        made.append(number & 127 | 128)
    return bytes(reversed(made))


def _page(kind: int, cells: bytes, pointers: list[int], size: int, last: int | None = None) -> bytes:
    """A page whose cells stand at its end; pointers count from there. last: an interior page's last child."""
    begin = size - len(cells)
    head = bytes((kind, 0, 0)) + len(pointers).to_bytes(2, "big") + begin.to_bytes(2, "big") + b"\0"
    head += b"" if last is None else last.to_bytes(4, "big")
    listed = b"".join((begin + pointer).to_bytes(2, "big") for pointer in pointers)
    return (head + listed).ljust(begin, b"\0") + cells


def shared_chain(rows: int = 3_000, length: int = 2_700_000, content: bytes = b"", table: str = NVTX) -> bytes:
    """Rows of a table that share one value: its last page is said to be followed by itself."""
    content = content or export()
    size, root = _size(content), _root(content, table)
    if not root or size < 1024:
        return content
    local = (size - 12) * 32 // 255 - 23
    length += -(length - local) % (size - 4)  # as SQLite lays it out, then all of the rest is on further pages
    columns = 5  # before the text, all NULL
    kinds = bytes(columns) + _varint(13 + 2 * (length - columns - 5))
    record = bytes((len(kinds) + 1,)) + kinds
    chain = len(content) // size + 1
    pages = {chain: chain.to_bytes(4, "big") + b"x" * (size - 4)}
    leaves: list[int] = []
    left = rows
    while left > 0:
        cell = _varint(length) + _varint(len(leaves) + 1) + record.ljust(local, b"x") + chain.to_bytes(4, "big")
        fit = min(left, (size - 8 - len(cell)) // 6)  # SQLite takes no more rows of a page
        leaves.append(chain + 1 + len(leaves))
        pages[leaves[-1]] = _page(0x0D, cell, [0] * fit, size)
        left -= fit
    cells = [page.to_bytes(4, "big") + _varint(number) for number, page in enumerate(leaves[:-1], 1)]
    pages[root] = _page(0x05, b"".join(cells), [5 * number for number in range(len(cells))], size, leaves[-1])
    return _with(content, pages)


def circle(levels: int = 5, content: bytes = b"", table: str = RUNTIME) -> bytes:
    """A table whose pages all have one child, hundreds of times, on each of so many levels."""
    content = content or export()
    size, root = _size(content), _root(content, table)
    if not root:
        return content
    first = len(content) // size + 1
    fan = (size - 12) // 7  # a child, its last row, and where both are
    record = bytes((6, 6, 6, 6, 1, 1)) + (10**9).to_bytes(8, "big") + (10**9 + 9).to_bytes(8, "big")
    record += (_PROCESS + 1).to_bytes(8, "big") + bytes((1, 0))
    cell = _varint(len(record)) + _varint(1) + record
    pages = {first + levels: _page(0x0D, cell, [0], size)}
    for level in range(levels):
        child = (first + level + 1).to_bytes(4, "big")
        made = _page(0x05, (child + b"\1") * fan, [5 * number for number in range(fan)], size, first + level + 1)
        pages[root if level == 0 else first + level] = made
    return _with(content, pages)


def named_rowid() -> bytes:
    """A column has the name by which SQLite calls a row's number."""
    added = (f"alter table {RUNTIME} add column rowid text", f"alter table {KERNEL} add column RowId int")
    return changed(export(), *added)


Step = Callable[[bytes, Random], bytes]


def _chained(content: bytes, random: Random) -> bytes:
    return shared_chain(random.choice((3, 300, 3_000)), random.choice((5_000, 2_700_000)), content, _table(random))


def _circled(content: bytes, random: Random) -> bytes:
    return circle(random.choice((1, 2, 5, 12)), content, _table(random))


def _table(random: Random) -> str:
    return random.choice((RUNTIME, KERNEL, NVTX, "StringIds", "META_DATA_CAPTURE", "sqlite_master"))


def _crowded(_: bytes, random: Random) -> bytes:
    return crowd(random.choice((50, 3_000, 20_000)))


def _overlapped(content: bytes, random: Random) -> bytes:
    """Calls of the sample, or of an export made here, that overlap."""
    if random.random() < 0.3:
        return overlapping(random.choice((500, 5_000)), random.choice((1, 2)))
    table = random.choice((RUNTIME, RUNTIME, KERNEL, "OSRT_API", NVTX))
    end = random.choice(("start + {n}", '"end" + {n}', "start + {n} * (rowid % 3)", "start + {n} - rowid"))
    return changed(content, f'update {table} set "end" = {end.format(n=random.choice((10**5, 10**7, 10**9)))}')


def _without_device(content: bytes, random: Random) -> bytes:
    """Nothing, or nothing that can be, is known of the GPU."""
    change = random.choice((
        "drop table TARGET_INFO_GPU", "delete from TARGET_INFO_GPU", "update TARGET_INFO_GPU set smCount = null",
        "update TARGET_INFO_GPU set smCount = 0", "update TARGET_INFO_GPU set smCount = -132",
        "update TARGET_INFO_GPU set id = id + 7, cuDevice = cuDevice + 7",
        "update TARGET_INFO_GPU set totalMemory = null, memoryBandwidth = null, clockRate = null",
    ))  # fmt: skip
    return changed(content, change)


STEPS: Mapping[str, Step] = {
    "shared-chain": _chained, "circle": _circled, "crowd": _crowded, "overlapping": _overlapped,
    "no-device": _without_device,
}  # fmt: skip


def damaged(name: str, content: bytes, random: Random, _: bytes) -> bytes:
    """The export after that step; unchanged when it is no database any more, or lacks the table."""
    try:
        return STEPS[name](content, random)
    except (sqlite3.Error, OverflowError, ValueError):
        return content
