"""Files that are no profile gpudiag reads, recognised by how they begin, and what to do with each: one sentence."""

from __future__ import annotations

import re

READS = (
    "gpudiag reads Nsight Systems exports (.sqlite, .nsys-rep), traces of torch.profiler (.json, .json.gz), and Nsight"
    " Compute reports (.ncu-rep) and their CSV (`ncu --csv --page raw`)"
)
UNKNOWN = f"this is not a profile that gpudiag knows; {READS}"
DATABASE = f"this is an SQLite database, but not an Nsight Systems export; {READS}"
SEMICOLONS = (
    "this Nsight Compute page is separated by semicolons, as spreadsheets save it; give the CSV as"
    " `ncu --csv --page raw` wrote it, separated by commas"
)
_TRACE = (
    "this is a trace for Chrome, but not as torch.profiler writes it; give what `prof.export_chrome_trace(…)` wrote"
)
_SMI_LOG = (
    "this is an nvidia-smi log, which is not read yet; it has no timeline to explain: capture the program with"
    " `nsys profile`"
)
_SMI_TABLE = "this is a dump of nvidia-smi's table, which is not read; capture the program with `nsys profile`"
_CPROFILE = (
    "this is a cProfile file, which is not read yet; capture the program with `nsys profile --python-sampling=true`"
)
_SUMS = "this is the text of `nsys stats`, whose sums hold no timeline; give the report it was made from"
_ARCHIVE = "this is an archive; unpack it and give the report in it"
_WEB_PAGE = "this is a web page, perhaps of a login or an error, not the report; download the file again"

_BEGINNINGS = {
    b"PAR1": "this is a single Parquet table; give the folder that `nsys export --type=parquetdir` wrote",
    b"\x89HDF\r\n\x1a\n": "this is an HDF5 file; export the report again with `nsys export --type=sqlite"
    " --include-json=true`",
    b"PK\x03\x04": _ARCHIVE,
    b"PK\x05\x06": _ARCHIVE,
    b"7z\xbc\xaf\x27\x1c": _ARCHIVE,
    b"Rar!\x1a\x07": _ARCHIVE,
    b"BZh": "this is packed with bzip2, which is not unpacked here; run `bunzip2` first",
    b"\x04\x22\x4d\x18": "this is packed with LZ4, which is not unpacked here; run `unlz4` first",
    b"%PDF-": "this is a PDF document; give the report itself",
    b"\x89PNG\r\n\x1a\n": "this is a picture; give the report itself",
    b"\xff\xd8\xff": "this is a picture; give the report itself",
    b"\x7fELF": "this is a program; give what `nsys profile` recorded of it",
    b"version https://git-lfs.github.com/": "this only stands for a file that Git LFS keeps elsewhere; run"
    " `git lfs pull` first",
}


def of_bytes(head: bytes) -> str | None:
    """Return the message for a binary file, or for one that magic bytes identify."""
    for beginning, sentence in _BEGINNINGS.items():
        if head.startswith(beginning):
            return sentence
    if head[257:262] == b"ustar":
        return _ARCHIVE
    # A marshalled dict, whose first key is a tuple of three: (file, line, function). The top bit marks a reference.
    if len(head) > 2 and head[0] & 0x7F == 0x7B and head[1] & 0x7F in (0x28, 0x29) and head[2] == 3:
        return _CPROFILE
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "this is a Python pickle, such as PyTorch's memory snapshot, which is not read; give a profile"
    if len(head) > 512 and not any(head):
        return "it begins with zeros only, so its content was lost; copy it again, and see that the disk is not full"
    return None


def of_text(text: str) -> str | None:
    """Return the message for a text file."""
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] in ("{", "["):
        return (
            _TRACE
            if re.search(r'"ph"\s*:', start)
            else "this is JSON, but neither a trace nor, by its name, a saved report (.json)"
        )
    if re.match(r"<(!doctype\s+html|html|head|body)\b", start, re.IGNORECASE):
        return _WEB_PAGE
    first = start.partition("\n")[0].lower()
    if re.search(r"\| NVIDIA-SMI\s+[\d.]+", start):
        return _SMI_TABLE
    if any(field in first for field in ("utilization.gpu", "memory.used", "power.draw", "temperature.gpu")):
        return _SMI_LOG
    if first.startswith("# gpu") and any(word in first for word in ("sm", "pwr", "mem")):
        return _SMI_LOG
    if "** CUDA API Summary" in text or "** CUDA GPU Kernel Summary" in text or "Processing [" in text[:2000]:
        return _SUMS
    return _SUMS if re.search(r"\*\* .* Summary \(\w+\):", text) else None
