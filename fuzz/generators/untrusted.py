"""Things that are no capture at all, and captures under strange names."""

from __future__ import annotations

import gzip
import json
import pickle
import struct
import zlib
from random import Random

from fuzz.generators import bytewise, hostile
from fuzz.given import Given

MAGICS = (
    b"SQLite format 3\x00", b"PAR1", b"NVR\x00", b"NVIDIA Tegra Profiler Report", b"\x1f\x8b\x08\x00", b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\x7fELF\x02\x01\x01", b"\x89PNG\r\n\x1a\n", b"%PDF-1.7\n",
    b"\x89HDF\r\n\x1a\n", b"{\x28\x03", b"\xe3(\x03", b"BZh9", b"#!/bin/sh\n", b"\xff\xfe", b"\xfe\xff", b"MZ",
    b"GIF89a", b'{"traceEvents": [', b'"ID","Process ID","Kernel Name"', b"ID,Kernel Name\n", b"# gpu   pwr  sm\n",
    b"timestamp, utilization.gpu [%]\n", b"| NVIDIA-SMI 550.1 |", b"** CUDA API Summary (cuda_api_sum):\n",
    b"\xef\xbb\xbf", b"<?xml version='1.0'?>", b"Kernel Name,ID\n", b'"ID";"Kernel Name"\n',
)  # fmt: skip
NAMES = (
    "a b.sqlite", "-o", "--help", "x\ny.sqlite", "\x1b[31mred.sqlite", "\u202efdp.sqlite", "a'b\".sqlite",
    "report.json", "report.JSON", "report.csv", "report.nsys-rep", "x.ncu-rep", "%s%n.sqlite", "?mode=rw.sqlite",
    "a#b?c=d&e.sqlite", "[a]*.sqlite", "n" * 240 + ".sqlite", "\u00e9\u0301.sqlite", "report.rank7.sqlite",
    "file:x.sqlite", ":memory:", "rank99999999.sqlite", "caf\udce9.sqlite",
)  # fmt: skip

_TRACE = json.dumps({"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "x"}]}).encode()
OTHERS = (
    _TRACE, pickle.dumps({"a": 1}), zlib.compress(b"x" * 99), struct.pack("<IHH", 0xA1B2C3D4, 2, 4) + bytes(16), b"",
    b"\x00" * 70_000, b"\n" * 9000, b"a" * 200_000, ("\u00e9" * 5000).encode("utf-16"), b"ID,Kernel Name\n1,x\n",
    b"\r\n".join([b"1;2;3"] * 50), gzip.compress(b""), gzip.compress(_TRACE), b"{" * 60_000, b"[" * 60_000,
)  # fmt: skip


def magic(given: Given, random: Random) -> None:
    """The first bytes of a known kind, then noise."""
    rest = random.choice(
        (b"", random.randbytes(random.choice((1, 100, 5000))), b"\x00" * 5000, given.content[:9000], b"a,b\n" * 300)
    )
    given.content = random.choice(MAGICS) + rest


def other_kind(given: Given, random: Random) -> None:
    """A small file of a kind that somebody might take for a capture."""
    put = (*OTHERS, hostile.text(random).encode("utf-8", "replace"), random.randbytes(3000))
    given.content = random.choice(put)


def named(given: Given, random: Random) -> None:
    """A sample under a strange name."""
    name = random.choice(NAMES)
    if name.startswith("-") or name in (".", ".."):
        name = f"./{name}"
    given.rename(name)


def not_a_file(given: Given, random: Random) -> None:
    """A pipe, a folder, a link that leads nowhere, to itself, or to a device."""
    name = given.main
    if name not in given.files:
        return
    del given.files[name]
    given.special[name] = random.choice(
        (
            "fifo",
            "folder",
            "link nowhere",
            f"link {name}",
            "link /dev/zero",
            "link /dev/null",
            "link /proc/self/mem",
            "link .",
        )
    )
    if random.random() < 0.3:
        given.special = {}


def bytes_(given: Given, random: Random) -> None:
    if given.main in given.files and given.content:
        given.content = bytewise.damaged(random.choice(sorted(bytewise.STEPS)), given.content, random, b"x" * 100)


STEPS = {"magic": magic, "other-kind": other_kind, "named": named, "not-a-file": not_a_file, "bytes": bytes_}
