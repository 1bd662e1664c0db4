"""Iterations from calls of modules. The traces are synthetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.model import Loop
from gpudiag.options import Options
from gpudiag.pipeline import explain
from torch_traces import Event, call, event, work, written

LAYERS = 12


def model(begin: float, first: int, name: str = "Net_0", *, backward: bool = False) -> list[Event]:
    """A module of twelve like layers, each a product and an activation module that all of them share; 1.2 ms."""
    events = [event("python_function", f"nn.Module: {name}", begin, 1_190, **{"Python id": first})]
    for layer in range(LAYERS):
        at, own = begin + 100 * layer, first + 4 * layer
        events.append(event("python_function", f"nn.Module: Layer_{layer}", at, 90, **{"Python id": own + 1}))
        events.append(event("python_function", "nn.Module: Gate_0", at + 70, 10, **{"Python id": own + 2}))
        for part in range(2):
            events.append(call("cudaLaunchKernel", at + 5 + 40 * part, 5, own + part + 1))
            events.append(work("kernel", f"part{part}(float*)", at + 12 + 40 * part, 30, own + part + 1))
    if backward:
        for layer in range(LAYERS):
            at, own = begin + 1_200 + 100 * layer, first + 60 + layer
            events.append(call("cudaLaunchKernel", at, 5, own, tid=77))
            events.append(work("kernel", "gradient(float*)", at + 8, 80, own))
    return events


def loop(folder: Path, events: list[Event]) -> Loop:
    (found,) = explain([written(folder / "trace.json", events)], Options(cached=False)).run.loops
    return found


@pytest.mark.slow
@pytest.mark.parametrize("backward", [False, True], ids=["inference", "training"])
def test_a_module_that_is_called_again_is_the_loop(tmp_path: Path, backward: bool) -> None:
    every = 2_500 if backward else 1_300
    events = [one for n in range(6) for one in model(every * n, 1_000 * n, backward=backward)]
    found = loop(tmp_path, events)
    # The first call is warm-up, and after the last one nothing tells where its iteration ends.
    assert (found.iterations, found.iteration_ms) == (4, pytest.approx(every / 1000, rel=0.02))


@pytest.mark.slow
def test_layers_of_a_single_call_are_no_loop(tmp_path: Path) -> None:
    assert loop(tmp_path, model(0, 0)).source == "unknown"


@pytest.mark.slow
def test_a_module_called_again_within_another_is_the_loop(tmp_path: Path) -> None:
    """A sampler that calls its network again and again."""
    events = [event("python_function", "nn.Module: Sampler_0", 0, 12_000, **{"Python id": 99_999})]
    found = loop(tmp_path, events + [one for n in range(9) for one in model(1_300 * n + 10, 1_000 * n)])
    assert (found.iterations, found.iteration_ms) == (7, pytest.approx(1.3, rel=0.02))
