"""Write a database as packed columns, and read it back.

A file is MAGIC, HEAD (a checksum of the rest; the sizes of the manifest and of the common stream, packed and not), the
manifest (JSON), the common stream, and a stream for each large column. Streams are raw LZMA2. The manifest says for
each table its statement, how many rows it has, whether it has a span, and for each column its place, its kind of
values, the size of its stream (0: the common one) and its coding.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.packed import columns as coder
from evaluation.packed import tables, texts
from evaluation.packed.columns import Ints
from evaluation.packed.database import Database
from evaluation.packed.streams import Reader, Writer

MAGIC = b"gpudiag columns 1\n"
HEAD = struct.Struct("<IIIII")
LITERAL = 3  # LZMA's `lc` for text
OWN_TEXT, OWN_BLOB = -1, -2  # in place of a place among the common texts


class DamagedError(Exception):
    """A file that is not what was written."""


def dump(database: Database) -> bytes:
    """Return a database as the content of a packed file."""
    listed: tables.Listed = {}
    statements = [listed.setdefault(statement, len(listed)) for statement in database.statements]
    laid = [tables.lay_out(table, listed) for table in database.tables]
    order = sorted(range(len(laid)), key=lambda place: laid[place].name != tables.CALLS)
    writer, calls = Writer(), dict[str, Ints]()
    values = put_values(list(listed), writer)
    manifest = [database.settings, statements, values, order[:1], [tables.put(laid[at], writer, calls) for at in order]]
    return sealed(MAGIC, manifest, writer)


def load(data: bytes) -> Database:
    """Return the database of a packed file. Raises DamagedError."""
    (settings, statements, values, first, entries), reader = unsealed(MAGIC, data)
    listed, calls = take_values(values, reader), dict[str, Ints]()
    found = [tables.take(entry, reader, listed, calls) for entry in entries]
    for place in first:
        found.insert(place, found.pop(0))
    return Database(settings, found, [str(listed[place]) for place in statements])


def sealed(magic: bytes, manifest: Any, writer: Writer) -> bytes:
    """Return the content of a file: its manifest and the streams that were written."""
    plain = json.dumps(manifest, separators=(",", ":")).encode()
    packed, small = coder.squeeze(plain, LITERAL), coder.squeeze(bytes(writer.small))
    content = packed + small + writer.large
    return magic + HEAD.pack(zlib.crc32(content), len(packed), len(plain), len(small), len(writer.small)) + content


def unsealed(magic: bytes, data: bytes) -> tuple[Any, Reader]:
    """Return the manifest and the streams of a file: the inverse of `sealed`. Raises DamagedError."""
    if not data.startswith(magic):
        raise DamagedError("this is no file of packed columns")
    check, packed, plain, small, small_plain = HEAD.unpack_from(data, len(magic))
    content = data[len(magic) + HEAD.size :]
    if zlib.crc32(content) != check:
        raise DamagedError("the checksum is not that of the content")
    manifest = json.loads(coder.unsqueeze(content[:packed], plain, LITERAL))
    return manifest, Reader(coder.unsqueeze(content[packed : packed + small], small_plain), content[packed + small :])


def put_values(listed: Sequence[str | bytes], writer: Writer) -> list[Any]:
    """Write the texts and blobs that a file lists: places among the common texts, and its own."""
    known = texts.places()
    own = [value for value in listed if value not in known]
    places = [known[value] if value in known else OWN_TEXT if isinstance(value, str) else OWN_BLOB for value in listed]
    raw = [value.encode() if isinstance(value, str) else value for value in own]
    body = b"".join(raw)
    sizes = np.array([len(one) for one in raw], np.int64)
    return [
        len(listed), writer.put(np.array(places, np.int64), {}, {}),
        len(own), writer.put(sizes, {}, {}),
        len(body), writer.put_bytes(body, LITERAL),
    ]  # fmt: skip


def take_values(entry: Sequence[Any], reader: Reader) -> list[str | bytes]:
    count, places, own, sizes, size, stream = entry
    found = reader.take(places, count, {}, {}).tolist()
    ends = np.cumsum(reader.take(sizes, own, {}, {})).tolist()
    body = reader.take_bytes(stream, size, LITERAL)
    spans = iter(zip([0, *ends], ends, strict=False))
    listed: list[str | bytes] = []
    for place in found:
        if place >= 0:
            listed.append(texts.common()[place])
            continue
        start, end = next(spans)
        listed.append(body[start:end].decode() if place == OWN_TEXT else body[start:end])
    return listed
