"""Files that are no profile gpudiag reads, recognised by how they begin, and what to do with each: one sentence."""

from __future__ import annotations

import re

READS = (
    "gpudiag reads Nsight Systems exports (.sqlite, .nsys-rep), traces of torch.profiler (.json, .json.gz), Nsight"
    " Compute reports (.ncu-rep) and their CSV (`ncu --csv --page raw`), logs of nvidia-smi (`--query-gpu=…"
    " --format=csv`, `dmon`) and files of cProfile (.pstats)"
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
    "record `nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,memory.used,memory.total,clocks.sm,"
    "clocks.max.sm --format=csv -l 1` beside the program, or a timeline with `nsys profile`"
)
_SMI_TABLE = f"this is a dump of nvidia-smi's table, which names no clocks and is not read; {_SMI_LOG}"
_SMI_REPORT = f"this is the report of `nvidia-smi -q`, which is not read; {_SMI_LOG}"
_SMI_PROCESSES = f"this is a log of `nvidia-smi pmon`, which is not read; {_SMI_LOG}"
_SMI_REFUSED = f"nvidia-smi recorded nothing here, only an error; {_SMI_LOG}"
_SMI_NO_HEADER = (
    "this looks like a log of nvidia-smi without its header, so nothing says what its columns are; record it again"
    " without `noheader`"
)
_SUMS = "this is the text of `nsys stats`, whose sums hold no timeline; give the report it was made from"
_ARCHIVE = "this is an archive; unpack it and give the report in it"
_PACKED = (
    "this is a recording as gpudiag's repository packs it; run `python -m evaluation.packed unpack FILE` there, and"
    " give what that writes"
)
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
    b"gpudiag columns ": _PACKED,
    b"gpudiag trace ": _PACKED,
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
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "this is a Python pickle, such as PyTorch's memory snapshot, which is not read; give a profile"
    if len(head) > 512 and not any(head):
        return "it begins with zeros only, so its content was lost; copy it again, and see that the disk is not full"
    return None


def of_text(text: str) -> str | None:
    """Return the message for a text file."""
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] in ("{", "["):
        if re.search(r'"ph"\s*:', start):
            return _TRACE
        if re.search(r'"schema_version"\s*:', start):
            return "this is a report that `gpudiag explain` saved, in another form than .json: unpack it, or name it so"
        return "this is JSON, but neither a trace of torch.profiler nor a report that `explain` saved"
    if re.match(r"<(!doctype\s+html|html|head|body)\b", start, re.IGNORECASE):
        return _WEB_PAGE
    if said := _of_smi(start):
        return said
    if "** CUDA API Summary" in text or "** CUDA GPU Kernel Summary" in text or "Processing [" in text[:2000]:
        return _SUMS
    return _SUMS if re.search(r"\*\* .* Summary \(\w+\):", text) else None


def _of_smi(start: str) -> str | None:
    """Return the message for what nvidia-smi prints and nobody can read by a header."""
    if re.search(r"\| NVIDIA-SMI\s+[\d.]+", start):
        return _SMI_TABLE
    if re.match(r"=+NVSMI LOG=+", start) or "<!DOCTYPE nvidia_smi_log" in start[:200]:
        return _SMI_REPORT
    if re.match(r'Field "[^"]*" is not a valid field|Failed to initialize NVML|No devices were found', start):
        return _SMI_REFUSED
    if re.match(r"#\s*gpu\s+pid\s", start):
        return _SMI_PROCESSES
    if re.match(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, .*(%|MiB|W|MHz)\s*[,\r\n]", start):
        return _SMI_NO_HEADER
    return None
