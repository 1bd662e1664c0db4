"""Traces of a GPU on this machine, for a hint and no more: a container may hide some of them."""

from __future__ import annotations

from pathlib import Path

_TRACES = (("/proc/driver/nvidia", "version"), ("/dev", "nvidia*"), ("/dev", "nvhost*"), ("/dev", "dxg"))
"""Of the driver, of its devices, of those of a Jetson, and of Windows beneath Linux."""


def is_present() -> bool:
    """Return whether anything here speaks of an NVIDIA GPU."""
    return any(any(Path(folder).glob(name)) for folder, name in _TRACES)
