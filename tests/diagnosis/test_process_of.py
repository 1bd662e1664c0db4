"""The process that a finding is about, where several run its loop. Synthetic."""

from __future__ import annotations

import pytest

from gpudiag.diagnosis import run_summary
from gpudiag.diagnosis.rank import rank
from gpudiag.evaluate.engine import Evaluation
from gpudiag.model import Fired
from ranking import VIEWS, rule
from timelines import Case, iterations, library, opened


def ranks(**names: int) -> Case:
    """Two processes that run one loop of ten iterations of 100 µs, with a kernel of 40 and 80 µs."""
    numbers = {"repeat": 10, "every": 100}
    return {
        "process": [{"id": n, "pid": 500 + n, **({"rank": n} if names else {})} for n in (0, 1)],
        "thread": [{"id": n, "process": n} for n in (0, 1)],
        "device": [{"id": n} for n in (0, 1)],
        "loop": [{"id": 0, "processes": 2}],
        "iteration": [iterations(10, 100, process=n, thread=n) for n in (0, 1)],
        "gpu_op": [
            {"process": n, "device": n, "stream": n, "name": "gemm()", "start": 0, "duration": busy, **numbers}
            for n, busy in ((0, 40), (1, 80))
        ],
    }


def named(case: Case, *processes: int) -> str | None:
    with opened(case, *VIEWS, "gap", "loop_tree") as con:
        run = run_summary.run(con, library().setting_values, {})
        query = "select i.idle_interval from idle_interval i join gap g using (gap) where list_contains(?, g.process)"
        chosen = [number for (number,) in con.execute(query, [list(processes)]).fetchall()]
        outcome = Fired(rule=rule("A01"), rows=({"loop": 0, "idle_intervals": chosen},))
        found = rank(con, Evaluation(outcomes=(outcome,)), library(), run.loops, run.frameworks)[0]
        return found[0].process


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), [(ranks(known=1), "rank 0"), (ranks(), "process 500")])
def test_nearly_all_of_it_in_one_process_names_that(case: Case, name: str) -> None:
    assert named(case, 0) == name


def test_what_both_have_is_neither_s() -> None:
    """Of both GPUs' idle time three quarters are the first one's: less than the four fifths that count."""
    assert named(ranks(known=1), 0, 1) is None


def test_a_process_that_is_alone_is_not_named() -> None:
    case = ranks(known=1)
    alone = {**{name: table[:1] for name, table in case.items()}, "loop": [{"id": 0}]}
    assert named(alone, 0) is None
