"""Kernels that test cases start from, declared once: `test_presets.yaml` of the packaged rules, or of a user's folder.

A case names one by `kernel: NAME`, or `kernel: {preset: NAME, grid: 64, metrics: {…}}` with other values; a metric of
null is left out. A list gives several kernels, each a row of `kernel_profile`, numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from gpudiag.errors import GpudiagError
from gpudiag.library import yaml_file
from gpudiag.library.folder import leads_out
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.rule_file import near, validate
from gpudiag.model import Frozen
from gpudiag.model.rule import ParamName, Prose
from gpudiag.schema import BY_NAME

FILE = "test_presets.yaml"
KEY = "kernel"
_COLUMNS = frozenset(BY_NAME["kernel_profile"].column_names) - {"id", "ordinal"}
_OVERRIDES = _COLUMNS | {"preset", "metrics"}


class KernelPreset(Frozen):
    """A profiled kernel as cases start from it."""

    about: Prose = Field(description="what kind of kernel it is, in a line")
    source: Prose = Field(description="where its figures come from: a capture, or chosen for the tests")
    profile: dict[ParamName, str | int | float] = Field(description="columns of `kernel_profile`; `name` at least")
    metrics: dict[str, float] = Field(default_factory=dict, description="metric → value, as in `kernel_metric`")

    @field_validator("profile")
    @classmethod
    def _columns(cls, profile: dict[str, Any]) -> dict[str, Any]:
        _refuse_unknown(profile, _COLUMNS)
        if "name" not in profile:
            raise ValueError("wants `name`, the kernel's")
        return profile


Presets = Mapping[str, KernelPreset]


@cache
def packaged() -> Presets:
    """The presets of the packaged rules. Raises GpudiagError."""
    return read(packaged_dir() / FILE)


def of_folders(folders: Iterable[Path]) -> Presets:
    """The packaged presets and those of users' folders. Raises GpudiagError with a line for each mistake."""
    known = dict(packaged())
    for folder in folders:
        path = Path(folder) / FILE
        if path.is_file() and not leads_out(path, Path(folder)):
            own = read(path)
            if taken := next((name for name in own if name in known), None):
                raise GpudiagError(f"{path}:1: the preset {taken} exists already; choose another name.")
            known |= own
    return known


def read(path: Path) -> Presets:
    """The presets of one file. Raises GpudiagError with a line for each mistake."""
    file = yaml_file.read(path)
    if not isinstance(file.data, dict):
        raise GpudiagError(f"{path}:1: holds no preset; write `name: {{about: …, source: …, profile: …, metrics: …}}`.")
    return {str(name): validate(KernelPreset, value, file, (name,)) for name, value in file.data.items()}


def expand(case: Mapping[str, Any], presets: Presets) -> dict[str, Any]:
    """The case with its kernels written out as rows, before the rows that it gives itself. Raises GpudiagError."""
    if KEY not in case:
        return dict(case)
    kernels = case[KEY] if isinstance(case[KEY], list) else [case[KEY]]
    profiles: list[dict[str, Any]] = []
    metrics: list[dict[str, Any]] = []
    for number, kernel in enumerate(kernels):
        given = {"preset": kernel} if isinstance(kernel, str) else kernel
        preset, values = _overridden(given, presets)
        profiles.append({**preset.profile, **{name: value for name, value in given.items() if name in _COLUMNS}})
        metrics += [{"profile": number, "metric": metric, "value": value} for metric, value in values.items()]
    rows = {"kernel_profile": profiles, "kernel_metric": metrics}
    written = {key: value for key, value in case.items() if key != KEY}
    return written | {table: made + list(case.get(table) or ()) for table, made in rows.items()}


def _overridden(given: Any, presets: Presets) -> tuple[KernelPreset, dict[str, float]]:
    """The preset that is meant, and its metrics with those of the case in place. Raises GpudiagError."""
    if not isinstance(given, dict) or not isinstance(given.get("preset"), str):
        raise GpudiagError(f"{KEY} wants the name of a preset, or {{preset: NAME, grid: …, metrics: {{…}}}}")
    name, metrics = given["preset"], given.get("metrics") or {}
    if name not in presets:
        raise GpudiagError(f"there is no preset {name!r}; known are {', '.join(sorted(presets)) or 'none'}")
    try:
        _refuse_unknown(given, _OVERRIDES)
    except ValueError as error:
        raise GpudiagError(f"{KEY}: {error}") from None
    if not isinstance(metrics, dict) or any(isinstance(value, str | list | dict) for value in metrics.values()):
        raise GpudiagError(f"{KEY}: metrics wants `metric: value`, or null to leave one out")
    preset = presets[name]
    for metric, value in metrics.items():
        if value is None and metric not in preset.metrics:
            near_ones = near(metric, preset.metrics)
            raise GpudiagError(f"{KEY}: the preset {name} has no metric {metric} to leave out{near_ones}")
    return preset, {metric: value for metric, value in {**preset.metrics, **metrics}.items() if value is not None}


def _refuse_unknown(keys: Iterable[str], known: frozenset[str]) -> None:
    """Raise ValueError for a key that is neither a column of `kernel_profile` nor a word of presets."""
    if unknown := sorted(map(str, set(keys) - known)):
        raise ValueError(f"kernel_profile has no column {', '.join(unknown)}; it has {', '.join(sorted(_COLUMNS))}")
