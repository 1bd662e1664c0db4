"""What findings are called and advise: no more than their rows prove, and nothing of another framework."""

from __future__ import annotations

import re

import pytest

from gpudiag.evaluate.engine import evaluate
from gpudiag.evaluate.evidence import Known
from gpudiag.evaluate.rule_sentences import message, title
from gpudiag.library.sql_check import relations_of
from gpudiag.model import Fired
from gpudiag.pipeline import build_report
from timelines import Case, iterations, library, opened


def summary(case: Case, code: str) -> tuple[str, str]:
    """The headline and the message of the rule for this case."""
    known = library()
    rule = known.by_code[code]
    with opened(case, *relations(rule.query)) as con:
        outcome = evaluate(rule, con, known)
        assert isinstance(outcome, Fired), outcome
        loops = Known.of(known, con).loops
        return title(rule, outcome.rows, loops), message(rule, outcome.rows, loops)


def relations(query: str) -> list[str]:
    """The packaged views that a query reads."""
    known = {view for _, sql in library().views for view in re.findall(r"create view (\w+)", sql)}
    return sorted(known & set(relations_of(query)))


def allocating(count: int, every: int, with_free: bool = False) -> Case:
    """Ten iterations with a launch; the first `count` also ask the driver for memory."""
    calls = [{"label": "k", "name": "cudaLaunchKernel", "start": 0, "duration": 5, "repeat": 10, "every": 200},
             {"name": "cudaMalloc", "start": 65, "duration": 95, "repeat": count, "every": every}]  # fmt: skip
    if with_free:
        calls.append({"name": "cudaFree", "start": 165, "duration": 20, "repeat": count, "every": every})
    ops = [{"api_call": "k", "name": "step()", "start": 10, "duration": 50, "repeat": 10, "every": 200}]
    return {"iteration": [iterations(10, 200)], "api_call": calls, "gpu_op": ops}


def test_memory_that_was_not_freed_is_not_called_freed() -> None:
    assert summary(allocating(10, 200), "A01")[0] == "Device memory is allocated in every iteration"
    assert (
        summary(allocating(10, 200, with_free=True), "A01")[0]
        == "Device memory is allocated and freed in every iteration"
    )


def test_six_iterations_of_ten_are_not_all() -> None:
    case = allocating(6, 200, with_free=True)
    assert summary(case, "A01")[0] == "Device memory is allocated and freed in most iterations"


@pytest.mark.slow
def test_without_a_loop_nobody_speaks_of_iterations() -> None:
    case = allocating(10, 200, with_free=True)
    case["loop"] = [{"id": 0, "name": "whole run", "period_source": "unknown"}]
    case["iteration"] = [iterations(1, 2000)]
    headline, text = summary(case, "A01")
    assert "iteration" not in headline + text
    assert "20 times in the recorded work" in text
    with opened(case, *every_view(), alone=True) as con:
        report = build_report(con, library(), {})
    assert "in the recorded work" in next(finding.message for finding in report.findings if finding.code == "A01")


def test_advice_for_any_program_holds_no_python() -> None:
    for remedy in library().remedies.values():
        if remedy.id in ("keep-jax-allocator", "vectorise-python"):  # given to JAX or Python programs alone
            continue
        for text in (remedy.intro, remedy.sections.get("any", "")):
            assert "```python" not in text, remedy.id
            said = re.search(r"\bpip install\b|interpreter lock|\bpython \w+\.py\b|NumPy|Python `", text)
            assert not said, remedy.id


def every_view() -> list[str]:
    return [view for _, sql in library().views for view in re.findall(r"create view (\w+)", sql)]


def fixes(case: Case) -> list[tuple[str, str]]:
    """Remedies of A02, with the framework that each is written for."""
    known = library()
    with opened(case, *every_view(), alone=True) as con:
        report = build_report(con, known, {})
    found = next(finding for finding in (*report.findings, *report.minor) if finding.code == "A02")
    return [(remedy.id, remedy.framework) for remedy in found.remedies]


def pooled(*calls: dict[str, object], kernel: str = "cupy_add__float32") -> Case:
    """Ten iterations of one kernel, with these calls beside its launches."""
    launch = {"label": "k", "name": "cudaLaunchKernel", "start": 0, "duration": 5, "repeat": 40, "every": 50}
    op = {"api_call": "k", "name": kernel, "start": 6, "duration": 5, "repeat": 40, "every": 50}
    return {"iteration": [iterations(10, 200)], "api_call": [launch, *calls], "gpu_op": [op]}


@pytest.mark.slow
def test_no_advice_to_stop_what_the_program_does_not_do() -> None:
    """Of CuPy a pool that is emptied after each block looks like none, and one advice names both calls."""
    calls = ({"name": "cudaMalloc", "start": 8, "duration": 10, "repeat": 40, "every": 50},
             {"name": "cudaFree", "start": 20, "duration": 20, "repeat": 40, "every": 50})  # fmt: skip
    assert fixes(pooled(*calls, kernel="void at::native::add<float>()")) == [("pool-allocation", "pytorch")]
    assert fixes(pooled(*calls)) == [("keep-the-pool", "cupy"), ("pool-allocation", "cupy")]


def test_chunks_uploaded_once_each_are_not_said_to_repeat() -> None:
    """Eight chunks of one size in a run without iterations, each its own data."""
    upload = {"kind": "memcpy", "copy_kind": "host_to_device", "src_kind": "pinned", "dst_kind": "device"}
    chunks = {**upload, "bytes": 1 << 20, "start": 10, "duration": 120, "repeat": 8, "every": 200}
    case: Case = {
        "loop": [{"id": 0, "name": "whole run", "period_source": "unknown"}],
        "iteration": [iterations(1, 1600)],
        "gpu_op": [chunks, {"name": "step()", "start": 150, "duration": 8, "repeat": 8, "every": 200}],
    }
    headline, text = summary(case, "M04")
    assert text.startswith("8 uploads")
    assert not re.search(r"again|repeat|every|iteration", headline + text)


def launching(short: float, every: float, then: float = 0) -> Case:
    """Ten iterations of 64 kernels of one length, launched at a distance, and of one more where that has a length."""
    length = 64 * every + then
    calls, ops = [], []
    for i in range(64):
        again = {"start": i * every, "repeat": 10, "every": length}
        calls.append({"label": f"short {i}", "name": "cudaLaunchKernel", "duration": 4, **again})
        again["start"] += 5
        ops.append({"api_call": f"short {i}", "name": "step()", "duration": short, **again})
    if then:
        again = {"start": 64 * every, "repeat": 10, "every": length}
        calls.append({"label": "long", "name": "cudaLaunchKernel", "duration": 4, **again})
        again["start"] += 5
        ops.append({"api_call": "long", "name": "solve()", "duration": then - 10, **again})
    return {"iteration": [iterations(10, length)], "api_call": calls, "gpu_op": ops}


def test_kernels_of_a_long_mean_are_not_called_small() -> None:
    """Most kernels take 5 µs, and one of each iteration takes 6 ms."""
    assert summary(launching(5, 20), "H01")[0] == "The GPU waits for the host to launch small kernels"
    assert summary(launching(5, 40, then=6_000), "H01")[0] == "The GPU waits for the host to launch kernels"


@pytest.mark.slow
def test_only_kernels_below_the_limit_are_called_tiny() -> None:
    limit = library().by_code["H04"].params["tiny_ns"].value / 1e3
    assert summary(launching(limit - 1, 2 * limit), "H04")[0] == (
        "A host loop launches the same few tiny kernels 64 times an iteration"
    )
    with pytest.raises(AssertionError):
        summary(launching(limit + 1, 2 * limit), "H04")
