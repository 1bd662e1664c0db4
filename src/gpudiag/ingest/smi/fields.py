"""Fields of an nvidia-smi log: the name that each version and command gives them, and what their cells may hold."""

from __future__ import annotations

import re
from typing import NamedTuple


class Field(NamedTuple):
    """A field that rules use. unit: of its values; most: above this a value is damage."""

    unit: str
    most: float


_PERCENT, _MHZ, _WATT = Field("%", 100), Field("MHz", 20_000), Field("W", 100_000)
_MIB, _COUNT, _FLAG = Field("MiB", 1e8), Field("", 64), Field("", 1)

FIELDS: dict[str, Field] = {
    "utilization.gpu": _PERCENT,
    "clocks.sm": _MHZ,
    "clocks.gr": _MHZ,
    "clocks.max.sm": _MHZ,
    "clocks.max.gr": _MHZ,
    "power.draw": _WATT,
    "power.limit": _WATT,
    "enforced.power.limit": _WATT,
    "temperature.gpu": Field("C", 200),
    "memory.used": _MIB,
    "memory.total": _MIB,
    "pcie.link.gen.current": _COUNT,
    "pcie.link.gen.max": _COUNT,
    "pcie.link.width.current": _COUNT,
    "pcie.link.width.max": _COUNT,
    "violation.power": _PERCENT,
    "violation.thermal": _PERCENT,
    "clocks_event_reasons.sw_power_cap": _FLAG,
    "clocks_event_reasons.sw_thermal_slowdown": _FLAG,
    "clocks_event_reasons.hw_thermal_slowdown": _FLAG,
    "clocks_event_reasons.hw_power_brake_slowdown": _FLAG,
    "clocks_event_reasons.hw_slowdown": _FLAG,
    "clocks_event_reasons.applications_clocks_setting": _FLAG,
}
"""Canonical name, which is the one of `nvidia-smi --help-query-gpu` → what it holds."""

OTHER_NAMES = {
    "clocks.current.sm": "clocks.sm",
    "clocks.current.graphics": "clocks.gr",
    "clocks.max.graphics": "clocks.max.gr",
    "power.draw.average": "power.draw",
    "power.draw.instant": "power.draw",
    "pcie.link.gen.gpucurrent": "pcie.link.gen.current",
}
IDENTITIES = ("uuid", "pci.bus_id", "index", "serial")
_OTHER_IDENTITIES = {"gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_serial": "serial", "gpu_name": "name"}

OF_DMON = {
    "sm": "utilization.gpu",
    "pclk": "clocks.sm",
    "pwr": "power.draw",
    "gtemp": "temperature.gpu",
    "temp": "temperature.gpu",  # as it was called before the memory had a sensor of its own
    "fb": "memory.used",
    "pviol": "violation.power",
    "tviol": "violation.thermal",
}
"""Column of `nvidia-smi dmon` → canonical name."""

REASONS = "clocks_event_reasons.active"
REASON_BITS = {
    0x2: "clocks_event_reasons.applications_clocks_setting",
    0x4: "clocks_event_reasons.sw_power_cap",
    0x8: "clocks_event_reasons.hw_slowdown",
    0x20: "clocks_event_reasons.sw_thermal_slowdown",
    0x40: "clocks_event_reasons.hw_thermal_slowdown",
    0x80: "clocks_event_reasons.hw_power_brake_slowdown",
}
"""Bit of the mask in REASONS → the field of that reason (nvml.h, nvmlClocksEventReasons)."""

_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ?(%|MHz|W|MiB|C)?", re.ASCII)
_FLAGS = {"Active": 1.0, "Not Active": 0.0}


def canonical(name: str) -> str:
    """Return the one name of a field that versions call differently."""
    name = name.replace("clocks_throttle_reasons.", "clocks_event_reasons.")
    return OTHER_NAMES.get(name) or _OTHER_IDENTITIES.get(name) or name


def value(field: str, cell: str) -> float | None:
    """Return the number in a cell; None for `[N/A]`, an error's text, another unit or what cannot be."""
    about = FIELDS[field]
    if cell in _FLAGS:
        return _FLAGS[cell] if about is _FLAG else None
    match = _NUMBER.fullmatch(cell)
    if match is None or (match[2] and match[2] != about.unit):
        return None
    number = float(match[1])
    return number if number <= about.most else None


def reasons(cell: str) -> dict[str, float]:
    """Return each reason of a mask such as `0x0000000000000004`, with 1 where its bit is set; none where it is none."""
    if not re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", cell):
        return {}
    mask = int(cell, 16)
    return {field: float(bool(mask & bit)) for bit, field in REASON_BITS.items()}


def is_absent(cell: str) -> bool:
    """Return whether nvidia-smi itself says that it has no value: `[N/A]`, `[Unknown Error]`, `-`."""
    return cell in ("", "-", "N/A") or (cell.startswith("[") and cell.endswith("]"))


def is_cell(cell: str) -> bool:
    """Return whether nvidia-smi may have written a cell, whatever is to be thought of its value."""
    return is_absent(cell) or _NUMBER.fullmatch(cell) is not None
