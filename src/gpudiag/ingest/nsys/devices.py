"""GPUs and streams of an Nsight Systems file: which GPU a CUDA device number means, which stream is the null stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpudiag.ingest.nsys.enums import Enums
from gpudiag.ingest.sources.base import Columns, Source, ints, texts

Pair = tuple[int, int]
StreamKey = tuple[int, int | None, int]
"""Process key, context, number."""

_PID = 0xFFFFFF
_DEVICE_COLUMNS = (
    "name", "sm_count", "clock_hz", "dram_bytes_per_s", "l2_bytes", "memory_bytes", "max_warps_per_sm",
    "max_blocks_per_sm", "registers_per_sm", "shared_bytes_per_sm", "copy_engines", "cc_major", "cc_minor",
)  # fmt: skip
DEVICE = ("id", "input", "ordinal", *_DEVICE_COLUMNS)
STREAM = ("id", "device", "process", "context", "number", "kind", "priority")

# Exports since 2022. Clocks are Hz, bandwidth is bytes a second, sizes are bytes.
_GPU = ints("id", "cuDevice") | texts("name") | ints(
    "smCount", "clockRate", "memoryBandwidth", "l2CacheSize", "totalMemory", "maxWarpsPerSm", "maxBlocksPerSm",
    "maxRegistersPerSm", "maxShmemPerSm", "asyncEngines", "computeMajor", "computeMinor",
)  # fmt: skip
# 2020 and 2021: clocks are kHz, bandwidth is kB a second, and 2020 wrote a cut-off bandwidth (0xF0000000) and MiB.
_CUDA_GPU = ints("deviceId") | texts("name") | ints(
    "numMultiprocessors", "coreClockRate", "globalMemoryBandwidth", "l2CacheSize", "globalMemorySize",
    "maxWarpsPerMultiprocessor", "maxBlocksPerMultiprocessor", "maxRegistersPerMultiprocessor",
    "maxSharedMemoryPerMultiprocessor", "numMemcpyEngines", "computeCapabilityMajor", "computeCapabilityMinor",
)  # fmt: skip
_CUT_OFF, _SMALLEST_BYTES, _MIB = 0xF0000000, 1 << 24, 1 << 20
_MOST_SMS, _INT32, _INT64 = 10_000, (1 << 31) - 1, (1 << 63) - 1


@dataclass(frozen=True)
class Gpu:
    """A GPU as the file describes it: its number in the file, its CUDA number, the values of _DEVICE_COLUMNS."""

    gpu: int
    cuda: int | None
    described: tuple[Any, ...]

    @property
    def place(self) -> tuple[float, int]:
        return float("inf") if self.cuda is None else self.cuda, self.gpu


@dataclass(frozen=True)
class Gpus:
    """GPUs and streams of the file, and the identifiers assigned so far; only the latter change."""

    gpus: tuple[Gpu, ...]
    cuda_devices: Mapping[Pair, int]
    """(process id, CUDA number) → GPU."""
    stream_info: Mapping[tuple[int, int, int], tuple[str, int | None]]
    """(process id, context, number) → kind, priority."""
    null_streams: Collection[tuple[int, int, int]]
    devices: dict[Pair, int] = field(default_factory=dict)
    """(process key, CUDA number) → device."""
    device_of_gpu: dict[int, int] = field(default_factory=dict)
    streams: dict[StreamKey, tuple[int, int, int]] = field(default_factory=dict)
    """→ device, process, stream."""
    stream_devices: dict[tuple[int, int | None], int] = field(default_factory=dict)
    """(process key, context) → smallest CUDA number seen with it."""


def read(source: Source, enums: Enums) -> Gpus:
    """Read the file's GPUs, CUDA device numbers and streams."""
    cuda_devices: dict[Pair, int] = {}
    for gpu, cuda, pid in source.rows("TARGET_INFO_CUDA_DEVICE", ints("gpuId", "cudaId", "pid")):
        if None not in (gpu, cuda, pid):
            cuda_devices.setdefault((pid, cuda), gpu)
    nulls = set(source.rows("TARGET_INFO_CUDA_NULL_STREAM", ints("processId", "contextId", "streamId")))
    nulls |= set(source.rows("TARGET_INFO_CUDA_CONTEXT_INFO", ints("processId", "contextId", "nullStreamId")))
    return Gpus(_gpus(source), cuda_devices, _stream_info(source, enums), nulls)


def _gpus(source: Source) -> tuple[Gpu, ...]:
    found: list[Gpu] = []
    if "smCount" in source.columns("TARGET_INFO_GPU"):
        for gpu, cuda, name, sms, clock, bandwidth, l2, memory, *limits in source.rows("TARGET_INFO_GPU", _GPU):
            if gpu is not None:  # nothing can refer to it
                found.append(Gpu(gpu, cuda, _described(name, sms, clock, bandwidth, l2, memory, limits)))
    else:
        columns: Columns = _CUDA_GPU
        for gpu, name, sms, clock, bandwidth, l2, memory, *limits in source.rows("TARGET_INFO_CUDA_GPU", columns):
            speed = bandwidth * 1000 if bandwidth and 0 < bandwidth < _CUT_OFF else None
            size = memory * _MIB if memory and memory < _SMALLEST_BYTES else memory
            if gpu is not None:
                found.append(Gpu(gpu, gpu, _described(name, sms, (clock or 0) * 1000, speed, l2, size, limits)))
    return tuple(sorted(set(found), key=lambda gpu: gpu.place))


def _described(
    name: str | None, sms: int | None, clock: int | None, bandwidth: int | None, l2: int | None, memory: int | None,
    limits: list[int | None],
) -> tuple[Any, ...]:  # fmt: skip
    # No GPU has zero or fewer of anything but copy engines and the minor version: such a value means "not known".
    *bounds, engines, major, minor = limits
    bounded = (_small(bound, _INT32) for bound in bounds)
    return (
        name, _small(sms, _MOST_SMS), *(_small(value, _INT64) for value in (clock, bandwidth, l2, memory)), *bounded,
        _small(engines, _INT32, least=0), _small(major, _INT32), _small(minor, _INT32, least=0),
    )  # fmt: skip


def _small(value: int | None, most: int, least: int = 1) -> int | None:
    """The value, where a GPU can have it."""
    return value if value is not None and least <= value <= most else None


def _stream_info(source: Source, enums: Enums) -> dict[tuple[int, int, int], tuple[str, int | None]]:
    found: dict[tuple[int, int, int], tuple[int | None, int | None]] = {}
    columns = ints("processId", "contextId", "streamId", "flag", "priority")
    for *key, flag, priority in source.rows("TARGET_INFO_CUDA_STREAM", columns):
        pid, context, number = key
        # Priorities are negative, but some versions write them as unsigned 32-bit numbers.
        if priority is not None and priority >= 1 << 31:
            priority -= 1 << 32
        flags, priorities = found.get((pid, context, number), (None, None))
        found[pid, context, number] = (_larger(flag, flags), _larger(priority, priorities))
    return {
        key: ("unknown" if flag is None else enums.stream_kinds.get(flag, "unknown"), priority)
        for key, (flag, priority) in found.items()
    }


def _larger(a: int | None, b: int | None) -> int | None:
    return max((value for value in (a, b) if value is not None), default=None)


def discover_devices(known: Gpus, keys: Collection[Pair], input_: int, first: int) -> list[tuple[Any, ...]]:
    """Rows of `device` for the GPUs that (process key, CUDA number) pairs newly mean.

    One GPU may have a number in each process. A GPU that the file does not describe keeps its number alone.
    """
    listed: dict[int, int] = {}
    for gpu in known.gpus:
        if gpu.cuda is not None:
            listed[gpu.cuda] = min(gpu.gpu, listed.get(gpu.cuda, gpu.gpu))
    described = {gpu.gpu: gpu.described for gpu in reversed(known.gpus)}
    if not listed and not known.cuda_devices and len(set(described.values())) == 1:
        # A new nsys exports an old capture without CUDA numbers: alike GPUs need none to be described.
        described |= dict.fromkeys((-1 - cuda for _, cuda in keys), known.gpus[0].described)
    meant = {
        (key, cuda): known.cuda_devices.get((key & _PID, cuda), listed.get(cuda, -1 - cuda))
        for key, cuda in keys
        if (key, cuda) not in known.devices
    }
    ordinals: dict[int, int] = {}
    for (_, cuda), number in meant.items():
        if number not in known.device_of_gpu:
            ordinals[number] = min(cuda, ordinals.get(number, cuda))
    rows = []
    for id_, (number, ordinal) in enumerate(sorted(ordinals.items(), key=lambda item: (item[1], item[0])), first):
        known.device_of_gpu[number] = id_
        rows.append((id_, input_, ordinal, *described.get(number, (None,) * len(_DEVICE_COLUMNS))))
    known.devices.update((key, known.device_of_gpu[number]) for key, number in meant.items())
    return rows


def idle_devices(known: Gpus, input_: int, first: int) -> list[tuple[Any, ...]]:
    """Rows of `device` for every GPU the file describes: for a file in which none of them did anything."""
    return [
        (id_, input_, gpu.gpu if gpu.cuda is None else gpu.cuda, *gpu.described)
        for id_, gpu in enumerate(known.gpus, first)
    ]


def discover_streams(
    known: Gpus, wanted: Mapping[StreamKey, int | None], processes: Mapping[int, int], first: int
) -> list[tuple[Any, ...]]:
    """Rows of `stream` for new (process key, context, number) keys with their CUDA device number.

    Stream 7 is CUPTI's number for the null stream of the first context; it counts only where the file names no null
    stream at all.
    """
    new = [key for key in wanted if key not in known.streams]
    new.sort(key=lambda key: (key[0], key[1] is None, key[1] or 0, key[2]))
    rows = []
    for id_, (key, context, number) in enumerate(new, first):
        device, process = known.devices[key, wanted[key, context, number] or 0], processes[key]
        place = (key & _PID, context, number)
        kind, priority = known.stream_info.get(place, (None, None)) if context is not None else (None, None)  # type: ignore[arg-type]
        if place in known.null_streams or (kind is None and number == 7 and context == 1 and not known.null_streams):
            kind = "null"
        rows.append((id_, device, process, context, number, kind or "unknown", priority))
        known.streams[key, context, number] = (device, process, id_)
    for (key, context, _), cuda in wanted.items():
        if cuda is not None:
            known.stream_devices[key, context] = min(cuda, known.stream_devices.get((key, context), cuda))
    return rows
