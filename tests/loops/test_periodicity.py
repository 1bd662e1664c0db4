"""The period of a repeated sequence of operations, and where its iterations begin."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.loops.periodicity import find_period, find_repetitions, iteration_starts
from timelines import library

SETTINGS = library().setting_values
names = st.sampled_from("abcdefgh")


def smallest_period(template: list[str]) -> int:
    return next(
        p for p in range(1, len(template) + 1) if len(template) % p == 0 and template[p:] + template[:p] == template
    )


@settings(max_examples=4 * settings().max_examples)
@given(template=st.lists(names, min_size=1, max_size=12), repeats=st.integers(8, 60))
def test_the_period_is_the_shortest_stretch_that_repeats(template: list[str], repeats: int) -> None:
    assert find_period(template * max(repeats, 12 // len(template)), SETTINGS) == smallest_period(template)


@settings(max_examples=4 * settings().max_examples)
@given(
    template=st.lists(names, min_size=1, max_size=12), repeats=st.integers(20, 60), seed=st.integers(0, 1000),
    noise=st.floats(0, 0.013),
)  # fmt: skip
def test_a_few_odd_operations_do_not_hide_the_period(
    template: list[str], repeats: int, seed: int, noise: float
) -> None:
    sequence = template * repeats
    chance = random.Random(seed)
    for index in chance.sample(range(len(sequence)), int(noise * len(sequence))):
        sequence[index] = "odd"
    assert find_period(sequence, SETTINGS) == smallest_period(template)


@settings(max_examples=4 * settings().max_examples)
@given(
    template=st.lists(names, min_size=2, max_size=12, unique=True), repeats=st.integers(20, 60),
    seed=st.integers(0, 1000), noise=st.floats(0, 0.03),
)  # fmt: skip
def test_operations_that_change_places_do_not_hide_it(
    template: list[str], repeats: int, seed: int, noise: float
) -> None:
    sequence = template * repeats
    chance = random.Random(seed)
    for index in chance.sample(range(len(sequence)), int(noise * len(sequence))):
        sequence[index] = chance.choice(template)
    assert find_period(sequence, SETTINGS) == len(template)


@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10_000), length=st.integers(40, 400))
def test_an_irregular_sequence_has_none(seed: int, length: int) -> None:
    chance = random.Random(seed)
    assert find_period([chance.choice("abcdefgh") for _ in range(length)], SETTINGS) is None


def test_a_template_that_seldom_repeats_is_no_loop() -> None:
    template = [f"kernel{n}" for n in range(30)]
    assert find_period(template * 3, SETTINGS) is None
    assert find_period(template * 8, SETTINGS) == 30
    assert find_period([], SETTINGS) is None
    assert find_period(["a"] * 3, SETTINGS) is None


@pytest.mark.parametrize("same", [10, 60, 300])
def test_many_equal_kernels_and_one_other_are_one_iteration(same: int) -> None:
    """An optimizer launches hundreds of the same element-wise kernel; the loss is computed once an iteration."""
    assert find_period((["add"] * same + ["loss"]) * 40, SETTINGS) == same + 1


@pytest.mark.parametrize("same", [3, 5, 20])
def test_an_iteration_of_runs_of_equal_kernels_is_found(same: int) -> None:
    assert find_period((["add"] * same + ["mul"] * same) * 20, SETTINGS) == 2 * same


def test_what_comes_before_the_loop_does_not_matter() -> None:
    setup = [f"setup{n}" for n in range(40)]
    assert find_period(setup + list("abc") * 100, SETTINGS) == 3


def test_stretches_that_repeat_come_by_how_long_they_do() -> None:
    """Tuning and then the loop: the second has fewer operations and takes longer."""
    sequence = list("xy") * 60 + [f"setup{n}" for n in range(40)] + list("abc") * 20
    times = [*range(160), *(1000 + 100 * n for n in range(60))]
    (first, *_), (then, *_) = found = list(find_repetitions(sequence, times, SETTINGS))[:2]
    assert (first, then) == (3, 2)
    assert [sequence[begin] in "abc" for _, begin, _ in found] == [True, False]


@settings(max_examples=4 * settings().max_examples)
@given(
    template=st.lists(names, min_size=1, max_size=12, unique=True), repeats=st.integers(8, 40), shift=st.integers(0, 11)
)
def test_an_iteration_begins_after_the_longest_pause(template: list[str], repeats: int, shift: int) -> None:
    pause = shift % len(template)
    waits = [100 if index % len(template) == pause else 1 for index in range(len(template) * repeats)]
    starts = iteration_starts(template * repeats, waits, len(template), SETTINGS)
    assert starts == list(range(pause, len(template) * (repeats - 1) + pause + 1, len(template)))[: len(starts)]
    assert len(starts) >= repeats - 1


@settings(max_examples=2 * settings().max_examples)
@given(template=st.lists(names, min_size=2, max_size=12, unique=True), seed=st.integers(0, 1000))
def test_iterations_never_overlap_and_begin_alike(template: list[str], seed: int) -> None:
    chance = random.Random(seed)
    sequence = template * 30
    for index in chance.sample(range(len(sequence)), len(sequence) // 50):
        sequence[index] = "odd"
    period = len(template)
    starts = iteration_starts(sequence, [1] * len(sequence), period, SETTINGS)
    assert all(b - a >= period for a, b in pairwise(starts))
    assert len({sequence[start] for start in starts}) == 1
    assert len(starts) >= 15
