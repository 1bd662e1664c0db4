"""Capabilities of an nvidia-smi log: what its columns could have shown."""

from __future__ import annotations

from collections.abc import Collection

from gpudiag.ingest.rows import Rows

_REASON = "clocks_event_reasons."
_NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "smi_utilization": (("utilization.gpu",),),
    "smi_clocks": (("clocks.sm",), ("clocks.gr",)),
    "smi_heat": (("violation.thermal",), (f"{_REASON}sw_thermal_slowdown",), (f"{_REASON}hw_thermal_slowdown",)),
    "smi_power": (
        ("violation.power",),
        (f"{_REASON}sw_power_cap",),
        ("power.draw", "enforced.power.limit"),
        ("power.draw", "power.limit"),
    ),
    "smi_memory": (("memory.used",),),
    "smi_link": (("pcie.link.width.current", "pcie.link.width.max"), ("pcie.link.gen.current", "pcie.link.gen.max")),
}
"""Capability → sets of fields of which one is enough."""

_NO_TIMELINE = {
    "gpu_ops": "a log of nvidia-smi shows the state of the GPU, and not what runs on it",
    "cuda_api": "a log of nvidia-smi shows the state of the GPU, and not what the program calls",
}


def of_log(own: int, found: Collection[str]) -> Rows:
    """Return the rows of `capability`. found: fields of which the log has a number somewhere."""
    rows: Rows = [(own, "smi_log", "recorded", "a log of nvidia-smi")]
    for name, enough in _NEEDED.items():
        if any(all(field in found for field in fields) for fields in enough):
            rows.append((own, name, "recorded", "the log has it"))
        else:
            rows.append((own, name, "not_recorded", f"the log has no value of {' and '.join(enough[0])}"))
    return rows + [(own, name, "not_recorded", how) for name, how in _NO_TIMELINE.items()]
