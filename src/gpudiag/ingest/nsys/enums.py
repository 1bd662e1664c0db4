"""Numbers that a file explains itself: enumerations, by the file's own tables, else by NVIDIA's documented numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpudiag.ingest.sources.base import Source, ints, texts

# Keys are what the enumeration's names end with, whatever prefix a version gives them.
_COPY_KINDS = {
    "KIND_HTOD": "host_to_device", "KIND_DTOH": "device_to_host", "KIND_HTOA": "host_to_device",
    "KIND_ATOH": "device_to_host", "KIND_ATOA": "device_to_device", "KIND_ATOD": "device_to_device",
    "KIND_DTOA": "device_to_device", "KIND_DTOD": "device_to_device", "KIND_HTOH": "host_to_host",
    "KIND_PTOP": "peer_to_peer", "KIND_UVM_HTOD": "unified_host_to_device",
    "KIND_UVM_DTOH": "unified_device_to_host", "KIND_UVM_DTOD": "unified_device_to_device",
}  # fmt: skip
_COPY_NUMBERS = {
    1: "host_to_device", 2: "device_to_host", 3: "host_to_device", 4: "device_to_host", 5: "device_to_device",
    6: "device_to_device", 7: "device_to_device", 8: "device_to_device", 9: "host_to_host", 10: "peer_to_peer",
    11: "unified_host_to_device", 12: "unified_device_to_host", 13: "unified_device_to_device",
}  # fmt: skip
_MEMORY_KINDS = {
    "KIND_PAGEABLE": "pageable", "KIND_PINNED": "pinned", "KIND_DEVICE": "device", "KIND_ARRAY": "array",
    "KIND_MANAGED": "managed", "KIND_DEVICE_STATIC": "device", "KIND_MANAGED_STATIC": "managed",
}  # fmt: skip
_MEMORY_NUMBERS = {
    0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device", 6: "managed",
}  # fmt: skip
_STREAM_KINDS = {"FLAG_DEFAULT": "blocking", "FLAG_NON_BLOCKING": "non_blocking", "FLAG_NULL": "null"}
_STREAM_NUMBERS = {1: "blocking", 2: "non_blocking", 3: "null"}
_EVENT_KINDS = {
    "NvtxMark": "mark", "NvtxtMark": "mark", "NvtxPushPopRange": "push_pop", "NvtxtPushPopRange": "push_pop",
    "NvtxStartEndRange": "start_end", "NvtxtStartEndRange": "start_end", "NvtxDomainCreate": "domain",
}  # fmt: skip
_EVENT_NUMBERS = {34: "mark", 59: "push_pop", 60: "start_end", 75: "domain"}
_SEVERITIES = {"Info": "info", "Warning": "warning", "Error": "error"}
_SEVERITY_NUMBERS = {1: "info", 2: "warning", 3: "error"}
_MEMORY_OPERATIONS = {"OPR_ALLOCATION": "allocate", "OPR_DEALLOCATION": "free"}
_MEMORY_OPERATION_NUMBERS = {0: "allocate", 1: "free"}


@dataclass(frozen=True)
class Enums:
    """Number → canonical word; a number that is not there is unknown."""

    copy_kinds: Mapping[int, str]
    memory_kinds: Mapping[int, str]
    stream_kinds: Mapping[int, str]
    nvtx_events: Mapping[int, str]
    severities: Mapping[int, str]
    memory_operations: Mapping[int, str]


def read_enums(source: Source) -> Enums:
    """The file's enumerations."""

    def read(table: str, words: Mapping[str, str], numbers: Mapping[int, str]) -> Mapping[int, str]:
        rows = source.rows(table, ints("id") | texts("name", "label"))
        if not rows:
            return numbers
        found: dict[int, str] = {}
        for number, name, label in rows:
            # The longest ending that fits: UVM_HTOD is not HTOD, DEVICE_STATIC is not STATIC.
            endings = [ending for ending in words if (name or label or "").endswith(ending)]
            if endings and number is not None:
                found[number] = words[max(endings, key=len)]
        return found

    return Enums(
        copy_kinds=read("ENUM_CUDA_MEMCPY_OPER", _COPY_KINDS, _COPY_NUMBERS),
        memory_kinds=read("ENUM_CUDA_MEM_KIND", _MEMORY_KINDS, _MEMORY_NUMBERS),
        stream_kinds=read("ENUM_CUPTI_STREAM_TYPE", _STREAM_KINDS, _STREAM_NUMBERS),
        nvtx_events=read("ENUM_NSYS_EVENT_TYPE", _EVENT_KINDS, _EVENT_NUMBERS),
        severities=read("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", _SEVERITIES, _SEVERITY_NUMBERS),
        memory_operations=read("ENUM_CUDA_DEV_MEM_EVENT_OPER", _MEMORY_OPERATIONS, _MEMORY_OPERATION_NUMBERS),
    )


def case(column: str, words: Mapping[int, str], default: str = "'unknown'") -> str:
    """SQL that gives the word for a number column; NULL stays NULL only if `default` is."""
    whens = " ".join(f"when {number} then '{word}'" for number, word in sorted(words.items()))
    return f"case {column} {whens} else {default} end" if whens else default


def numbers_of(words: Mapping[int, str], word: str) -> str:
    """The numbers that mean a word, as an SQL list that is never empty."""
    return ", ".join(str(number) for number, value in sorted(words.items()) if value == word) or "null"
