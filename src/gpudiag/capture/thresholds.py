"""Thresholds of recordings that a report rests on, from rules/settings.yaml, where each has its reason.

The single file of the recorder carries their values along: it runs where nothing can read YAML.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, fields

BUNDLED = "thresholds.json"
_PREFIX = "capture_"


@dataclass(frozen=True)
class Thresholds:
    """The settings whose names begin with `capture_`, without that."""

    slower: float
    start_up_doubt: float
    wanted_doubt: float
    iterations: float
    least_s: float
    window_s: float
    window_steps: float
    windows: float
    trace_iterations: float
    trace_least_s: float
    trace_most_s: float
    kernels: float

    @classmethod
    def of(cls, settings: Mapping[str, float]) -> Thresholds:
        """Take them from all settings."""
        return cls(**{field.name: settings[_PREFIX + field.name] for field in fields(cls)})

    def named(self) -> dict[str, float]:
        """Return them under the names of the settings."""
        return {_PREFIX + field.name: getattr(self, field.name) for field in fields(self)}


def load() -> Thresholds:
    """Return the thresholds of this installation, or those that the recorder's file carries."""
    try:
        bundled = pkgutil.get_data("gpudiag.capture", BUNDLED)
    except OSError:
        from gpudiag.library import load as library

        return Thresholds.of(library.load().setting_values)
    assert bundled is not None
    return Thresholds.of(json.loads(bundled))
