"""Divisions of a sequence of operations into iterations: the outermost level that repeats often enough."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.loops.period import segmentation
from gpudiag.loops.period.division import Division, Marker
from gpudiag.loops.period.segmentation import closing, iterations
from gpudiag.loops.period.submissions import Submissions
from timelines import library

SETTINGS = library().setting_values
names = st.sampled_from("abcdefgh")


BATCH = "memcpy:host_to_device"  # of more than a few numbers
FRAME = "memcpy:device_to_host frame"  # of an array


def submitted(sequence: Sequence[str], pauses: Sequence[int] | None = None) -> Submissions:
    """Operations of 10 µs one after another; pauses: for how long the host launched nothing before each (ns).

    A product of matrices is called gemm; the time of copies back does not count. What begins with `tiny` takes 300 ns,
    with `viewer` belongs to a thread of its own; `graph: step` is one graph, other graphs are several.
    """
    kinds = sorted(set(sequence))
    kind = np.array([kinds.index(name) for name in sequence], dtype=np.int64)
    pair = np.unique(kind * (len(kinds) + 1) + np.append(kind[1:], len(kinds)), return_inverse=True)[1]
    waited = np.array(pauses if pauses is not None else [1] * len(kind), dtype=np.int64)
    thread = np.array([name.startswith("viewer") for name in sequence], dtype=np.int64)
    start = np.cumsum(waited + 10_000)
    roles = tuple("product" if name.startswith("gemm") else "" for name in kinds)
    took = np.array([0 if "device_to_host" in name else 300 if name.startswith("tiny") else 1e4 for name in sequence])
    return Submissions(
        start, waited, start + 10_000, thread, kind, pair, took,
        tuple(kinds), tuple(kinds), roles, tuple("multi_tensor" in name for name in kinds),
        np.flatnonzero([name == BATCH for name in sequence]), np.flatnonzero([name == FRAME for name in sequence]), {},
        np.array([name == "graph: step" for name in kinds]),
    )  # fmt: skip


def begins(sequence: Sequence[str], pauses: Sequence[int] | None = None) -> list[int]:
    """Where the likeliest iterations begin; empty where nothing repeats."""
    found = next(iterations(submitted(sequence, pauses), SETTINGS), None)
    return found.begins.tolist() if found else []


def distances(sequence: Sequence[str]) -> set[int]:
    return set(np.diff(begins(sequence)).tolist())


@settings(max_examples=2 * settings().max_examples)
@given(template=st.lists(names, min_size=1, max_size=12), repeats=st.integers(10, 60))
def test_an_iteration_begins_where_its_own_operation_comes(template: list[str], repeats: int) -> None:
    template = ["loss", *template]
    assert begins(template * repeats) and distances(template * repeats) == {len(template)}


@settings(max_examples=2 * settings().max_examples)
@given(
    template=st.lists(names, min_size=4, max_size=12, unique=True),
    repeats=st.integers(20, 60),
    seed=st.integers(0, 1000),
)
def test_a_few_odd_operations_hide_no_iteration(template: list[str], repeats: int, seed: int) -> None:
    sequence, chance = template * repeats, random.Random(seed)
    for place in chance.sample(range(len(sequence)), len(sequence) // 100):
        sequence[place] = "odd"
    found = begins(sequence)
    assert found and float(np.median(np.diff(found))) == len(template)


@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10_000), length=st.integers(40, 400))
def test_an_irregular_sequence_has_no_iterations(seed: int, length: int) -> None:
    chance = random.Random(seed)
    assert begins([chance.choice("abcdefgh") for _ in range(length)]) == []


def last_length(sequence: Sequence[str]) -> int:
    """Count the operations of the likeliest iterations' last one."""
    events = submitted(sequence)
    found = next(iterations(events, SETTINGS))
    return closing(events, found, found.count - 1, SETTINGS)


@pytest.mark.parametrize(
    ("end", "length"),
    [
        ([], 6),
        (["result"], 6),
        (["update"], 6),  # of a kind that each iteration has, but only once
        (["load", "act"], 6),  # the recording ends in the next one
        (["load", "gemm", "act", "gemm", "act", "gemm", "act", "update"], 8),  # three layers for two
    ],
)
def test_the_last_iteration_ends_with_its_own_operations(end: list[str], length: int) -> None:
    assert last_length(["load", "gemm", "act", "gemm", "act", "update"] * 20 + end) == length


def test_a_cut_iteration_ends_where_the_next_one_began() -> None:
    full = ["load", "gemm", "act", "norm", "act", "update"]
    events = submitted([*full * 19, *full[:-1], "load", "gemm", "update"])
    marker = Marker(events.names.index("load"), "", 0.0)
    at = marker.positions(events)
    content, good = np.array([full.count(name) for name in events.names]), np.ones(18, dtype=bool)
    cut = Division(marker, at[:-1], 1.0, 1.0, 6.0, content, good, stump=at[-1])
    assert closing(events, cut, cut.count - 1, SETTINGS) == 5


def test_what_seldom_repeats_is_no_loop() -> None:
    template = [f"kernel{number}" for number in range(30)]
    assert begins(template * 3) == []
    assert distances(template * 8) == {30}
    assert begins([]) == begins(["a"] * 3) == []


@pytest.mark.parametrize("layers", [12, 48])
def test_a_token_is_the_iteration_and_not_its_layers(layers: int) -> None:
    layer = ["norm", "qkv", "attention", "project", "norm", "up", "act", "down"]
    token = ["embed", *layer * layers, "norm", "head", "argmax"]
    assert distances(token * 40) == {len(token)}


def test_a_step_of_many_layers_is_known_by_its_optimizer() -> None:
    """Five steps are few, and their layers repeat sixty times."""
    forward, backward = ["gemm", "gelu", "norm"] * 12, ["gemm_grad", "gelu_grad", "norm_grad"] * 12
    step = ["embed", *forward, "loss", *backward, *["multi_tensor_apply_kernel"] * 5]
    assert distances(step * 5) == {len(step)}


@pytest.mark.parametrize("times", [5, 7])
def test_the_iteration_of_a_short_recording_is_found(times: int) -> None:
    """A time step of a solver's cycles; without an optimizer only its own operations tell it from them."""
    step = ["source", *["relax", "residual", "restrict", "coarse", "prolong"] * 12, "advance", "boundary"]
    assert distances(step * times) == {len(step)}


def test_a_few_short_parts_of_one_pass_are_no_loop() -> None:
    """An array is sent and added to in five parts, each on a stream of its own."""
    assert begins([BATCH, BATCH, "add", "memcpy:device_to_host"] * 5) == []


@pytest.mark.parametrize("times", [5, 7])
def test_a_few_reports_or_epochs_end_no_iteration(times: int) -> None:
    update = ["embed", "gemm", "gelu", "loss", "gemm_grad", "multi_tensor_apply_kernel"]
    epoch = [*update * 16, *["forward", "loss"] * 4, "memcpy:device_to_host"]
    assert float(np.median(np.diff(begins(epoch * times)))) == len(update)
    step = ["gradient", "update", "project", "swap"] * 3
    report = ["norm", "memcpy:device_to_host"]
    assert float(np.median(np.diff(begins((step * 10 + report) * times)))) < len(step * 10)


@pytest.mark.parametrize("every", [5, 10])
def test_a_convergence_test_ends_no_iteration(every: int) -> None:
    step = ["gradient", "update", "project", "swap"] * 3
    test = ["norm", "memcpy:device_to_host"]
    assert float(np.median(np.diff(begins((step * every + test) * 9)))) < len(step * every)


@pytest.mark.parametrize("cycles", [3, 4])
def test_a_time_step_of_a_few_cycles_is_no_test_of_them(cycles: int) -> None:
    """The residual is read after each cycle; a time step ends with a section that is copied back."""
    cycle = ["relax", "residual", "restrict", "coarse", "prolong", "relax", "norm", "memcpy:device_to_host"]
    step = ["source", "norm", "memcpy:device_to_host", *cycle * cycles, "section", "memcpy:device_to_host"]
    assert distances(step * 30) == {len(step)}


@pytest.mark.parametrize("arrays", [1, 5])
def test_a_snapshot_ends_no_iteration(arrays: int) -> None:
    """A simulation tests its energy and copies its state back every five steps."""
    step = ["push", "deposit", "solve", "gather"] * 3
    written = ["energy", "memcpy:device_to_device", *["memcpy:device_to_host"] * arrays]
    begun = begins((step * 5 + written) * 12)
    assert float(np.median(np.diff(begun))) <= len(step)


def test_a_matrix_that_is_factorised_every_fifth_step_ends_none() -> None:
    """Next to no operations and time, but with a product of matrices; the step itself is of few kinds."""
    solve = [*["spmv", "axpy", "dot"] * 20, *[f"level{number}" for number in range(12)]]
    step = ["source", *solve, "update", "norm", "memcpy:device_to_host"]
    factorised = ["gemm", "tiny_trsm", "tiny_getrf", "tiny_trsm"]
    assert min(distances((step * 5 + factorised) * 12)) == len(step)


def test_a_time_step_that_saves_its_fields_is_the_iteration() -> None:
    """As many arrays as a snapshot, but its solver needs now more iterations, now fewer."""
    solve, sequence = ["spmv", "dot", "axpy", "update"], []
    for number in range(30):
        sequence += [*solve * (8 + 5 * number % 15), "diagnose", *["memcpy:device_to_host"] * 5]
    assert len(begins(sequence)) in (29, 30)


_MOMENTS = [*(f"tiny_{number}" for number in range(12)), *["memcpy:device_to_host"] * 4]  # more than a log line takes


def test_energies_and_moments_of_a_simulation_end_no_step() -> None:
    """Dozens of small kernels every twenty steps are more operations than a step has, and take next to no time."""
    step = ["kick_drift", "forces", "kick", "tracers"]
    assert len(begins((step * 20 + _MOMENTS) * 12)) == pytest.approx(240, abs=1)


def test_moments_of_steps_that_read_values_end_none() -> None:
    """Each step reads values of its own back, one by one."""
    step = ["kick_drift", "forces", "kick", *["tracer", "memcpy:device_to_host"] * 6]
    assert len(begins((step * 20 + _MOMENTS) * 12)) == pytest.approx(240, abs=1)


@pytest.mark.parametrize("least", [16, 24])
def test_a_time_step_of_many_iterations_is_no_report_of_them(least: int) -> None:
    """As little time around a solver, which needs now more iterations, now fewer."""
    solve, sequence = ["spmv", "dot", "axpy", "update"], []
    for number in range(30):
        sequence += [*solve * (least + 5 * number % 7), *_MOMENTS]
    assert len(begins(sequence)) in (29, 30)


def test_what_is_computed_before_a_solver_is_no_report() -> None:
    """Two small kernels of fourteen come before forty iterations, always as many: a time step begins with them."""
    step = ["tiny_start", "tiny_border", *["spmv", "axpy", "smooth"] * 40, *_MOMENTS]
    assert distances(step * 20) == {len(step)}


def test_what_a_solver_with_reads_begins_with_is_no_report() -> None:
    """The first of its iterations reads its own value soon after, and the step logs a sum."""
    solve = ["product", "dot", "memcpy:device_to_host", "update"]
    step = ["tiny_assemble", "tiny_begin", *solve * 40, "tiny_sum", "memcpy:device_to_host"]
    assert distances(step * 20) == {len(step)}


@pytest.mark.parametrize("begun", [[BATCH], ["tiny_restore"], [BATCH, "tiny_restore"]])
def test_a_day_of_many_books_is_the_iteration(begun: list[str]) -> None:
    """Its books share what the day begins with, and their values are read back together."""
    day = [*begun, *["simulate", "price", "reduce"] * 24, *["memcpy:device_to_host"] * 7]
    assert distances(day * 30) == {len(day)}


@pytest.mark.parametrize("layers", [2, 12])
def test_how_often_the_same_work_comes_is_said(layers: int) -> None:
    """Twice is said of no iteration: a step has two halves, as a forward pass and the pass back."""
    step = ["memcpy:host_to_device", "embed", *["attention", "mlp"] * layers, "head", "loss"]
    found = next(iterations(submitted(step * 30), SETTINGS))
    assert found.repeats == (layers if layers > 2 else None)


@pytest.mark.parametrize(("energy", "snapshot"), [(25, 15), (20, 30)])
def test_two_schedules_are_no_levels(energy: int, snapshot: int) -> None:
    """Energies that are kept on the GPU, and snapshots of five arrays: the steps that both are counted in are alike."""
    sequence = []
    for step in range(300):
        sequence += ["kick_drift", "forces", "kick"]
        sequence += ["energy"] if step % energy == 0 else []
        sequence += ["pack", *(f"memcpy:device_to_host {n}" for n in range(5))] if step % snapshot == 0 else []
    assert len(begins(sequence)) == pytest.approx(300, abs=1)


def test_schedules_show_where_steps_hold_two_thirds_of_the_time() -> None:
    """A neighbour list is built anew after about eleven steps, which takes as long as seven of them."""
    sequence: list[str] = []
    for step in range(300):
        sequence += ["drift", "memcpy:device_to_host moved"]
        sequence += ["keys", "sort", *["build"] * 24, "gather"] if step * 5 % 56 < 5 else []
        sequence += ["forces", "kick"]
        sequence += ["heat_bath"] if step % 10 == 0 else []
        sequence += ["pick", "memcpy:device_to_host sample"] if step % 25 == 0 else []
    assert len(begins(sequence)) == pytest.approx(300, abs=1)


def test_one_kernel_more_before_a_solver_s_steps_is_no_schedule() -> None:
    """Two transforms a step, and one before the first: that 60 and 121 do not divide says nothing of the image."""
    centred = [*["roll"] * 4, "fft", *["roll"] * 4]
    step = ["maps", *centred, "residual", *centred, "combine", "shrink", "extrapolate"]
    before = ["unpack", "scatter", "window", *centred, "abs", "smooth", "support", "normalise", "scale"]
    image = ["memcpy:host_to_device", *before, *step * 60, "shading", "divide", "memcpy:device_to_host"]
    assert distances(image * 40) == {len(image)}


def test_schedules_of_steps_leave_a_step_its_layers() -> None:
    """Every second step logs, every third one writes: a step of 24 layers is still a step."""
    sequence = []
    for step in range(90):
        sequence += ["embed", *["attention", "mlp"] * 24, "gemm head", "loss"]
        sequence += ["norm", "memcpy:device_to_host"] if step % 2 == 0 else []
        sequence += [f"memcpy:device_to_host {n}" for n in range(9)] if step % 3 == 0 else []
    assert len(begins(sequence)) == pytest.approx(90, abs=1)


def test_what_multiplies_matrices_after_the_layers_is_no_test() -> None:
    """The head of a model is small, and its answer is read back."""
    layer = ["norm", "gemm_qkv", "attention", "gemm_out", "norm", "gemm_up", "act", "gemm_down"]
    token = [*layer * 24, "gemm_head", "memcpy:device_to_host"]
    assert distances(token * 30) == {len(token)}


def test_checkpoints_at_uneven_distances_end_no_step() -> None:
    """Weights are copied back after every two to ten steps."""
    chance, sequence = random.Random(2), []
    forward, backward = [f"gemm{n}" for n in range(20)], [f"gemm_grad{n}" for n in range(20)]
    step = ["input", *forward, "loss", *backward, "multi_tensor_apply_kernel"]
    for _ in range(9):
        sequence += [*step * chance.choice([2, 4, 6, 8, 10]), *["memcpy:device_to_host"] * 40]
    found = begins(sequence)
    assert float(np.median(np.diff(found))) == len(step)


def test_a_checkpoint_every_fifth_step_ends_no_step() -> None:
    forward, backward = [f"gemm{n}" for n in range(20)], [f"gemm_grad{n}" for n in range(20)]
    step = ["memcpy:host_to_device", *forward, "loss", *backward, "multi_tensor_apply_kernel"]
    sequence = [*step * 5, *["memcpy:device_to_host"] * 48] * 10
    assert float(np.median(np.diff(begins(sequence)))) == len(step)


def test_two_updates_in_each_iteration_are_one() -> None:
    update = ["sample", *["gemm", "gelu"] * 8, "loss", *["gemm_grad"] * 8, "multi_tensor_apply_kernel"]
    iteration = ["policy", "noise", "memcpy:device_to_host", *update * 2]
    assert distances(iteration * 40) == {len(iteration)}


def test_a_logged_value_ends_no_iteration_that_reads_values() -> None:
    """A solver reads its residual back while it solves; every five steps a sum of the solution is logged."""
    chance, sequence = random.Random(5), []
    for step in range(60):
        solve = [*["product", "dot", "update"] * 8, "memcpy:device_to_host"] * chance.choice([5, 6, 6, 7])
        sequence += ["assemble", "start", *solve, *["sum", "memcpy:device_to_host"] * (step % 5 == 4)]
    assert len(begins(sequence)) in (59, 60)


def logging(step: Sequence[str], every: int, logged: Sequence[str] = (), *, array: bool = False) -> list[int]:
    """Where iterations begin of 300 steps; after every so many the program logs, or copies an array, and waits."""
    sequence, waits = [], []
    for number in range(1, 301):
        sequence += [*step, *logged * (number % every == 0)]
        waits += [len(sequence)] * (number % every == 0)
    events = replace(submitted(sequence), calls={"0 cudaStreamSynchronize": np.array(waits[:-1])})
    if array:
        events = replace(events, results=np.array(waits) - 1)
    return next(iterations(events, SETTINGS)).begins.tolist()


READINGS = ["flux", "advance", "highest", *["memcpy:device_to_host"] * 40]


@pytest.mark.parametrize("logged", [[], ["memcpy:device_to_host"]])
def test_a_log_line_of_steps_that_read_values_ends_none(logged: list[str]) -> None:
    """Each step reads gauges back one by one; after ten of them the time is logged as well."""
    assert len(logging(READINGS, 10, logged)) in (299, 300)


@pytest.mark.parametrize(("step", "every", "logged"), [
    (READINGS, 4, []),  # a time step of a few cycles
    (READINGS[:3], 12, []),  # the layers of a model
    (READINGS, 10, ["memcpy:device_to_host"] * 20),  # more than a log line
])  # fmt: skip
def test_what_a_wait_ends_may_be_the_iteration(step: list[str], every: int, logged: list[str]) -> None:
    assert len(logging(step, every, logged)) in (300 // every - 1, 300 // every)


def test_a_frame_of_ten_steps_that_read_values_is_the_iteration() -> None:
    assert len(logging(READINGS, 10, ["memcpy:device_to_host"], array=True)) in (29, 30)


def test_a_log_line_does_not_divide_a_pass_into_its_parts() -> None:
    """A pass over six chunks ends with new centres; every fifth pass their shift is read back."""
    chunk = ["gather", "product", "square", "argmin", "scatter", "count"] * 4
    sequence = []
    for number in range(40):
        sequence += [*chunk * 6, "divide", "absolute", "max", *["memcpy:device_to_host"] * (number % 5 == 4)]
    assert float(np.median(np.diff(begins(sequence)))) == len(chunk) * 6 + 3


def test_what_warming_up_computes_says_nothing_of_a_test() -> None:
    """A program compiles and runs its evaluation once before the loop, and reads nothing then."""
    step = ["noise", "scale", *["graph: scan"] * 60, "rank", "update", "shift", "store"]
    warm = ["reduce", *["graph: scan"] * 20, "reduce", *["graph: scan"] * 20]
    sequence = [*warm, *[*step * 10, "reduce", *["memcpy:device_to_host"] * 3] * 10]
    assert float(np.median(np.diff(begins(sequence)))) == len(step)


def test_a_small_test_every_few_steps_is_no_step() -> None:
    """Every fifth step a reduction of four kernels finds the longest time step, and the host reads two values."""
    step = ["sort", "scan", "cells", "forces", "integrate"] * 4 + ["bounds"]
    test = ["reduce_a", "reduce_b", "reduce_c", "reduce_d", *["memcpy:device_to_host"] * 2]
    assert float(np.median(np.diff(begins((step * 5 + test) * 12)))) == len(step)


@pytest.mark.parametrize(("kernels", "logged", "saved"), [
    (1, 10, 50), (2, 10, 50), (2, 20, 100), (3, 5, 25), (5, 5, 25), (5, 10, 50), (8, 5, 25), (8, 20, 100),
])  # fmt: skip
def test_log_lines_and_snapshots_end_no_step(kernels: int, logged: int, saved: int) -> None:
    """A step of few kernels: every so many a value is read back, and less often the whole state."""
    step, sequence = [f"kernel{number}" for number in range(kernels)], []
    for number in range(1, 201):
        sequence += [*step, *["tiny_square", "tiny_sum", "memcpy:device_to_host"] * (number % logged == 0)]
        sequence += ["memcpy:device_to_device", "memcpy:device_to_host"] * (number % saved == 0)
    assert float(np.median(np.diff(begins(sequence)))) == kernels


@pytest.mark.parametrize(("every", "batches"), [(10, 7), (8, 3), (25, 10)])
def test_a_validation_every_so_many_steps_ends_no_step(every: int, batches: int) -> None:
    forward = ["memcpy:host_to_device", "input", *["gemm", "norm", "gelu"] * 6, "loss"]
    step = [*forward, *["gelu_grad", "norm_grad", "gemm_grad"] * 6, "norm", "multi_tensor_apply_kernel"]
    validation = [*[*forward, "error"] * batches, "mean", "memcpy:device_to_host"]
    sequence = [*step * every, *validation] * 9
    assert float(np.median(np.diff(begins(sequence)))) == len(step)


@pytest.mark.parametrize("every", [10, 25])
def test_a_step_begins_after_the_validation_before_it(every: int) -> None:
    """A validation shares its forward pass with the steps, whose own kernels lie in their middle."""
    forward = ["memcpy:host_to_device", *[f"layer{n}" for n in range(12)]]
    step = [*forward, "loss_grad", *[f"grad{n}" for n in range(12)], "multi_tensor_apply_kernel"]
    validation = [*forward, "error", "memcpy:device_to_host"] * 6
    sequence = [*step * every, *validation] * 9
    found = begins(sequence)
    assert len(found) == 9 * every
    assert all(sequence[at : at + len(step)] == step for at in found)


def test_what_follows_the_last_step_is_no_level_of_the_run() -> None:
    step = ["input", "conv", "relu", "loss", "grad", "multi_tensor_apply_kernel"]
    sums = ["tiny_abs", "tiny_sum", "tiny_convert", "tiny_add"] * 50
    checked = [*step * 25, *["input", "conv", "relu"] * 9] * 6
    assert float(np.median(np.diff(begins([*checked, *sums])))) == len(step)


def test_a_measurement_that_uploads_zeros_to_fill_is_no_step() -> None:
    """Every forty steps a kernel adds to an array that the host made, and that is read back at once."""
    step, measured = ["move", "deposit", "blur", "blur"], ["memcpy:host_to_device", "moments", "memcpy:device_to_host"]
    sequence = [*["memcpy:host_to_device"] * 5, *[*step * 40, *measured] * 9]
    assert float(np.median(np.diff(begins(sequence)))) == len(step)


def test_an_array_that_is_uploaded_before_a_read_is_no_test() -> None:
    """The host constrains a Jacobian: it is copied back and uploaded, and soon after a residual is read back."""
    back = "memcpy:device_to_host"
    solve = [*["spmv", "fixup", "dot", "reduce", "step", "precondition"] * 3, back] * 3
    newton = ["residual", "dot", "reduce", back, "jacobian", back, "memcpy:host_to_device", "invert", "start"]
    assert distances([*newton, "dot", "reduce", back, *solve] * 40) == {len(newton) + 3 + len(solve)}


def test_a_copy_to_a_target_network_ends_no_step() -> None:
    """Every twentieth step copies the weights, by a kernel as an optimizer has, and reads back what is logged."""
    step = ["sample", *["conv", "relu"] * 20, "loss", *["relu_grad", "conv_grad"] * 20, "multi_tensor_adam"]
    sequence = [*step * 20, "tiny_multi_tensor_copy", "memcpy:device_to_host"] * 12
    assert float(np.median(np.diff(begins(sequence)))) == len(step)


def test_scores_and_files_of_a_forecast_end_no_step() -> None:
    """Every fourth step is scored by a product whose sums stay on the GPU, every eighth one is written."""
    step = ["pad", *[f"{kind}{n}" for n in range(40) for kind in ("conv", "norm", "act")], "add"]
    sequence = []
    for lead in range(240):
        sequence += step
        sequence += ["difference", "gemm score"] if lead % 4 == 3 else []
        sequence += ["pack", "memcpy:device_to_host"] if lead % 8 == 7 else []
    assert len(begins(sequence)) == pytest.approx(240, abs=1)


def test_a_time_step_is_more_than_what_its_solver_reads() -> None:
    """Each inner iteration reads five dot products back; a time step sets up, solves in forty and sums its result."""
    inner = ["product", "update", *["dot", "memcpy:device_to_host"] * 3, "spmv", *["dot", "memcpy:device_to_host"] * 2]
    step = ["assemble", "start", *inner * 40, "sum", "memcpy:device_to_host"]
    assert distances(step * 30) == {len(step)}


def test_kernels_tried_for_a_new_shape_are_no_level() -> None:
    """Every sixteenth step adds a penalty; a library tries its algorithms once, for as long as sixty steps."""
    step = [BATCH, *["tiny_conv", "tiny_act", "tiny_norm"] * 20, "multi_tensor"]
    penalty = ["tiny_double_conv", "tiny_double_act", "multi_tensor"]
    tried = [f"try{n % 10}" for n in range(320)]
    run = step * 16 + tried + penalty + (step * 16 + penalty) * 8 + step * 8
    assert min(distances(run)) == len(step)
    assert len(begins(run)) > 100


def test_what_a_solver_begins_with_is_no_test() -> None:
    """Each time step sets its borders, solves in a hundred iterations, and reads the residual back."""
    solve = ["spmv", "dot", "update", "dot", "direction"] * 100
    step = ["borders", "residual", *solve, "memcpy:device_to_host"]
    assert distances(step * 20) == {len(step)}


def test_graphs_launched_often_are_no_step() -> None:
    """A compiled step is sixteen graphs, which look all alike, and a loss that is read back."""
    step = ["tiny_bits", "tiny_shuffle", *["graph:"] * 16, "tiny_loss", "memcpy:device_to_host"]
    assert distances(step * 40) == {len(step)}


def test_copies_line_by_line_are_no_steps() -> None:
    """A batch is uploaded in a thousand copies, filtered and read back."""
    batch = [*["memcpy:device_to_device"] * 1000, "filter", "count", *["memcpy:device_to_host"] * 2]
    assert distances(batch * 20) == {len(batch)}


def test_one_kernel_twice_between_pauses_is_one_step() -> None:
    """A step compiles for 200 ms and launches one kernel for the even and one for the odd places."""
    found = begins(["sweep"] * 60, [200_000_000 if number % 2 == 0 else 1 for number in range(60)])
    assert found == list(range(0, 60, 2))


def test_an_optimizer_after_five_passes_ends_the_iteration() -> None:
    """Gradients are accumulated; the loss is read back after the update."""
    micro = ["input", *["gemm", "gelu"] * 30, "loss", *["gemm_grad"] * 30, "memcpy:device_to_host"]
    step = [*micro * 5, "multi_tensor_apply_kernel", "memcpy:device_to_host"]
    assert distances(step * 12) == {len(step)}


def test_a_request_that_is_uploaded_and_answered_is_no_test() -> None:
    layer = ["norm", "qkv", "attention", "project", "norm", "up", "act", "down"]
    request = ["memcpy:host_to_device", *layer * 24, "memcpy:device_to_host"]
    assert distances(request * 30) == {len(request)}


def test_a_kernel_that_some_iterations_run_marks_no_level() -> None:
    """A library picks another kernel for long batches: they come one, two or three apart."""
    chance, sequence = random.Random(1), []
    for _ in range(60):
        middle = chance.choice(["norm_grad", "norm_grad_long"])
        sequence += ["input", *["gemm", "gelu"] * 8, "loss", "gelu_grad", middle, *["gemm_grad"] * 8, "clip", "adam"]
    assert float(np.median(np.diff(begins(sequence)))) == 30


def test_kernels_that_a_library_picks_by_size_make_no_level() -> None:
    """Of as many kernels as lengths each marks a few batches; two of them are more than a fifth of a batch's own."""
    chance, sequence = random.Random(3), []
    for _ in range(80):
        length = min(chance.randrange(12), chance.randrange(12))
        sequence += ["gather", *["gemm", "gelu", "norm"] * 12, f"gemm_{length}", f"gemm_{length}_b"]
    assert distances(sequence) == {39}


def test_a_wider_kernel_in_long_steps_is_no_level() -> None:
    """Of sentences of 8 to 60 words half need a wider kernel; two steps together are more alike than single ones."""
    chance, sequence = random.Random(3), list[str]()
    encoder = [f"encoder{number}" for number in range(12)]
    for _ in range(40):
        words = chance.randrange(8, 60)
        decoder = [*(f"cell{part}" for part in range(9)), "softmax_wide" if words > 32 else "softmax"] * words
        backward = [f"{one}_grad" for one in [*decoder[::-1], *encoder]]
        sequence += ["embed", *encoder, *decoder, "loss", *backward, "clip", "adam"]
    assert 38 <= len(begins(sequence)) <= 40


def test_steps_with_an_input_each_are_the_iterations() -> None:
    """A validation every so many steps, by kernels of which no name tells that they update weights."""
    sequence = []
    for steps in [20] * 8 + [3] + [20] * 6 + [60]:
        step = [BATCH, *[f"fusion_{n}" for n in range(9)]]
        sequence += [*step * steps, *[f"fusion_{n}" for n in (20, 21, 22)] * 4, "memcpy:device_to_host"]
    assert float(np.median(np.diff(begins(sequence)))) == 10


def test_steps_that_hand_over_an_array_each_are_the_iterations() -> None:
    """Particles are sorted every tenth step; a sample of them is copied back after each. Norms would tell nothing."""
    step, sort = ["fft", "field", "ifft", "fill", "push", "gather"], ["keys", *["histogram", "scatter"] * 3, "move"]
    for copied, length in ((FRAME, len(step) + 1), ("memcpy:device_to_host", 10 * (len(step) + 1) + len(sort))):
        sequence = [*[*step, copied] * 10, *sort] * 20
        assert float(np.median(np.diff(begins(sequence)))) == length, copied


def test_arrays_that_are_parts_of_one_result_end_no_iteration() -> None:
    """An image is uploaded, and its patches come back one by one; so does a layer's output of an uploaded token."""
    patch = ["crop", "conv", "act", "conv", "act", "blend", FRAME]
    for inner, times in ((patch, 20), (["norm", "attend", "mix", FRAME], 12)):
        sequence = [BATCH, "prepare", *inner * times, "finish"]
        assert distances(sequence * 30) == {len(sequence)}


def test_tiles_of_a_frame_without_an_input_end_no_iteration() -> None:
    sequence = ["camera", *["trace", FRAME] * 16]
    assert distances(sequence * 30) == {len(sequence)}


def test_partial_sums_that_the_host_adds_end_no_time_step() -> None:
    """A solver copies an array of partial sums back in each iteration; a time step also sets up and moves."""
    inner = ["spmv", "axpy", "dot", FRAME, "scale", "add"]
    setup = ["predict", "limit", "divergence", "guess", *["smooth", "clip"] * 9]
    sequence = [*setup, *inner * 16, "project", "advect"]
    assert distances(sequence * 30) == {len(sequence)}


@pytest.mark.parametrize("step", [["graph: step"], ["forward", "update"]])
def test_a_validation_ends_no_step_of_one_graph_or_two_kernels(step: list[str]) -> None:
    """As a compiler makes them: the step has an upload and little else; another kernel validates every fifty steps."""
    sequence = [*[BATCH, *step] * 50, *[BATCH, "validate"] * 5]
    assert float(np.median(np.diff(begins(sequence * 12)))) == 1 + len(step)


@pytest.mark.parametrize("uploads", [1, 2])
def test_a_host_that_solves_between_kernels_divides_no_scenario(uploads: int) -> None:
    """A kernel's sums come back and what the host solved is uploaded, forty times in each scenario of paths."""
    date = ["fill", "regress", "memcpy:device_to_host", *[BATCH] * uploads]
    scenario = ["normals", "paths", "exotics", *date * 40, "americans", "memcpy:device_to_host"]
    assert distances(scenario * 30) == {len(scenario)}


def test_prompts_beside_the_tokens_of_a_server_end_no_step() -> None:
    """Every other step takes in one or two prompts, which add kernels to each of its layers."""
    chance, lengths = random.Random(0), []
    sequence: list[str] = []
    for _ in range(150):
        prompts = chance.choice([0, 0, 1, 2])
        attended = ["paged", *["gather", "flash", "place"] * 2 * prompts]
        layer = ["norm", "gemm qkv", "rope", *attended, "gemm out", "norm", "gemm up", "act", "gemm down"]
        step = [BATCH, *map("prepare{}".format, range(8)), *layer * 12, *map("sample{}".format, range(8))]
        sequence += [*step, "memcpy:device_to_host"]
        lengths.append(len(step) + 1)
    assert np.diff(begins(sequence)).tolist() == lengths[:-1]


@pytest.mark.parametrize("together", [1, 3])
def test_requests_that_a_server_takes_in_end_no_step(together: int) -> None:
    """A prompt is computed by kernels of its own, after two steps or after nine. What a solver of few kinds needs now
    fewer iterations for, now more, is its time step.
    """
    chance, step = random.Random(2), [*(f"sample{n}" for n in range(19)), "graph: step", "memcpy:device_to_host"]
    sequence: list[str] = []
    for _ in range(40):
        prompts = chance.randrange(1, together + 1)
        prefill = [BATCH, *["gemm prompt", "rope", "flash", "gemm up", "act"] * 6, "place"] * prompts
        sequence += [*prefill, *step * chance.randrange(2, 10)]
    assert distances([name for name in sequence if name != BATCH]) - {len(step)}
    assert float(np.median(np.diff(begins(sequence)))) == len(step)
    solver = [name for name in sequence if not name.startswith("sample")]
    assert len(begins(solver)) in (39, 40)


@pytest.mark.parametrize("after", [[f"force{n}" for n in range(10)], ["force"], [FRAME]])
def test_a_time_step_of_a_large_solver_is_no_request(after: list[str]) -> None:
    """Its inner iterations are of many kinds, now two, now nine; forces come after them and before the next input, or
    an array is copied back.
    """
    chance, sequence = random.Random(5), []
    inner = [*(f"scf{n}" for n in range(24)), "memcpy:device_to_host"]
    for _ in range(40):
        sequence += [BATCH, *(f"overlap{n}" for n in range(10)), *inner * chance.randrange(2, 10), *after]
    assert len(begins(sequence)) == pytest.approx(40, abs=1)


def test_what_some_steps_of_a_server_upload_ends_no_step() -> None:
    """Whenever a request is answered, an order is uploaded and the cache is copied in that order; a prompt may come."""
    chance, sequence = random.Random(4), []
    for _ in range(240):
        answered = chance.random() < 0.6
        sequence += [BATCH, *["gather", "memcpy:device_to_device"] * 3] if answered else []
        sequence += ["gemm prompt", "flash"] * 100 if answered and chance.random() < 0.3 else []
        sequence += [*(f"sample{n}" for n in range(60)), "graph: step", "memcpy:device_to_host"]
    assert len(begins(sequence)) == pytest.approx(240, abs=1)


def test_copies_of_one_input_are_no_iterations() -> None:
    """A block of pulses arrives in hundreds of packets, each copied by itself."""
    block = [*[BATCH] * 400, "unpack", "fft", "multiply", "ifft", "detect", "memcpy:device_to_host"]
    assert distances(block * 20) == {len(block)}


def test_a_batch_of_queries_is_no_row_of_its_convergence_tests() -> None:
    """Each batch is uploaded and propagated in twelve steps; the host waits after every fourth for a test, and twice
    before a batch.
    """
    tested = [*["clear", "propagate", "seeds"] * 4, "zero", "tiny_change", "memcpy:device_to_host"]
    result = ["zero", "tiny_gather", "tiny_sort", "memcpy:device_to_host"]
    batch = [BATCH, "zero", "seeds", *tested * 3, *result]
    begun = [number * len(batch) for number in range(150)]
    waits = sorted([at + 3 + len(tested) * test for at in begun for test in (1, 2, 3)] + [begun[0], begun[75]])
    events = replace(submitted(batch * 150), calls={"0 cudaStreamSynchronize": np.array(waits)})
    found = next(iterations(events, SETTINGS))
    assert set(np.diff(found.begins).tolist()) == {len(batch)}


def test_a_day_of_hours_that_are_read_one_by_one_is_no_iteration() -> None:
    """Every day some values are picked and read for a log; each hour is an upload and what is computed of it."""
    hour = [BATCH, *["fft", "multiply", "stack"] * 8]
    day = [*hour * 24, *["sort", "pick", "memcpy:device_to_host"] * 6]
    assert distances(day * 10) <= {len(hour), len(hour) + 18}
    assert float(np.median(np.diff(begins(day * 10)))) == len(hour)


def test_an_iteration_may_collect_data_and_update_many_times() -> None:
    """Sixteen updates on what was collected are one iteration with it, unlike steps and a validation after them."""
    update = ["forward", "loss", "backward", "multi_tensor_adam"]
    iteration = [*["move", "reward", "reset"] * 5, *update * 16]
    assert distances(iteration * 12) == {len(iteration)}
    epoch = [*update * 16, *["forward", "loss"] * 4, "memcpy:device_to_host"]
    assert float(np.median(np.diff(begins(epoch * 12)))) == len(update)


def test_a_thread_beside_the_loop_is_no_level_of_it() -> None:
    chance, sequence = random.Random(4), []
    step = ["input", *["gemm", "gelu"] * 12, "loss", *["gemm_grad", "gelu_grad"] * 12, "multi_tensor_adam"]
    for _ in range(30):
        sequence += [*step * chance.choice([6, 7, 7, 8]), *[f"viewer_{part}" for part in "abcdef"]]
    assert float(np.median(np.diff(begins(sequence)))) == len(step)


def test_slots_that_are_filled_together_stay_iterations() -> None:
    """A pipeline of three slots waits for all of them before it fills them again."""
    step = [BATCH, *"abcdefg", "memcpy:device_to_host"]
    pauses = ([100_000_000, *[1] * 8, *[1] * 9, *[1] * 9]) * 30
    assert float(np.median(np.diff(begins(step * 90, pauses)))) == len(step)


def test_iterations_of_varying_work_are_found() -> None:
    """An adaptive solver takes two to four steps of its own for each step of the optimizer."""
    chance, sequence = random.Random(3), []
    for _ in range(30):
        sequence += ["input", *["field", "combine", "error"] * chance.choice([2, 3, 4]), "loss", "adam"]
    found = begins(sequence)
    assert len(found) in (29, 30) and len({sequence[place] for place in found}) == 1


def test_clusters_of_one_kernel_divide_where_nothing_else_does() -> None:
    step = ["norm", "gemm"] * 6 + ["gemm", "gemm_grad"] * 20
    assert distances(step * 12) == {len(step)}


def test_validation_between_steps_is_no_part_of_one() -> None:
    step = ["input", *["conv", "relu"] * 6, "loss", *["conv_grad", "relu_grad"] * 6, "adam"]
    run = [*step * 20, *["input", *["conv", "relu"] * 6] * 9, *step * 20]
    assert float(np.median(np.diff(begins(run)))) == len(step)


@settings(max_examples=2 * settings().max_examples)
@given(
    template=st.lists(names, min_size=2, max_size=12, unique=True),
    repeats=st.integers(10, 40),
    shift=st.integers(0, 11),
)
def test_an_iteration_begins_after_the_longest_pause(template: list[str], repeats: int, shift: int) -> None:
    pause = shift % len(template)
    sequence = template * repeats
    pauses = [200_000 if place % len(template) == pause else 1 for place in range(len(sequence))]
    found = begins(sequence, pauses)
    assert found == list(range(pause, len(sequence), len(template)))[: len(found)] and len(found) >= repeats - 1


def test_a_long_run_is_divided_as_a_short_one() -> None:
    """More operations than are looked at, of which every one belongs to an iteration."""
    token = ["embed", *["norm", "qkv", "attention", "project"] * 12, "head", "argmax"]
    found = begins(token * 6000)
    assert len(found) in (5999, 6000) and set(np.diff(found).tolist()) == {len(token)}


def test_the_batches_of_a_validation_are_no_steps() -> None:
    """A run so long that steps are sought in its middle, by a kernel that the batches of a validation run as well."""
    step = ["input", *["conv", "relu"] * 50, "loss", *["conv_grad", "relu_grad"] * 100, "multi_tensor"]
    batch = ["input", *["conv", "relu"] * 50, "loss"]
    run = [*step * 1000, *batch * 60]
    places = begins(run, [200_000 if name == "input" else 1 for name in run])
    assert len(places) == 1000 and set(np.diff(places).tolist()) == {len(step)}


def test_what_set_up_a_long_run_hides_no_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = ["forward", "shrink", "sort", "inverse"]
    step = ["copy", BATCH, "spread", *inner * 30]
    setup = [name for _ in range(400) for name in ("copy", "simulate")]
    monkeypatch.setattr(segmentation, "_STRETCH", 3000)  # of 8,000 operations
    found = begins([*setup, *step * 60])
    assert len(found) >= 59 and set(np.diff(found).tolist()) == {len(step)}


@pytest.mark.parametrize(
    ("graph", "around", "apart"),
    [
        ("graph: step", ["tiny draw", "tiny join"], 1),
        ("graph: parts", ["tiny draw", "tiny join"], 22),  # several graphs: the layers of a step, say
        ("graph: step", ["draw", "join"], 22),  # which take a tenth of the time
        ("graph: step", [BATCH, "tiny draw"], 22),  # an input for all of them
        ("graph: step", ["tiny draw", FRAME], 22),  # an array as the result of all
        ("graph: step", ["tiny draw", "memcpy:device_to_host"], 1),  # a log line every so many steps
    ],
)
def test_one_graph_over_and_over_is_the_iteration(graph: str, around: list[str], apart: int) -> None:
    assert min(distances([*around, *[graph] * 20] * 40)) == apart


def test_a_solver_of_one_graph_ends_with_a_value_read_back() -> None:
    run = [
        name
        for step in range(40)
        for name in ("tiny draw", *["graph: step"] * (20 + step % 7), "memcpy:device_to_host")
    ]
    assert min(distances(run)) >= 22
