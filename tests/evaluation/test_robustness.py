"""How far a constant is moved to see whether an answer hangs on it."""

import pytest

from evaluation import robustness


@pytest.mark.parametrize(
    ("name", "factor", "value"),
    [
        ("loop_epoch_steps", 1.25, 10.0),
        ("loop_alike", 1.25, 0.75),  # a cosine: the distance from 1 is moved
        ("loop_alike", 0.75, 0.85),
        ("loop_held", 1.25, None),  # no share is over 1
    ],
)
def test_a_constant_is_moved_by_a_quarter(name: str, factor: float, value: float | None) -> None:
    moved = robustness._moved((name, factor))
    assert (moved and moved.setting_values[name]) == (value and pytest.approx(value))
