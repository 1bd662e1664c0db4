"""The profiler's cost: the length of the host's work without it.

Recording a call costs its thread some microseconds; GPU work and long host phases take as long with a profiler as
without. So what is taken away first is time around calls, as much for each, but never more than a part of what is
there. With the unprofiled time of an iteration that amount is solved for; without one, a price is a range over what
recording may have cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from gpudiag.replay.graph import Graph
from gpudiag.replay.simulate import length, replay
from gpudiag.replay.trace import Floats

_STEPS = 12  # halvings of the interval in which a solution lies


@dataclass(frozen=True, slots=True)
class Calibration:
    """One guess of the host's time without the profiler.

    per_call: ns less for each recorded call, as far as the share `floor` of the host time around it allows.
    per_function: ns less for each Python function and operator recorded before it, likewise.
    per_node: ns less for each operation of a graph that a call launched, where these were recorded, likewise.
    driver: what is left of all host time after that, the driver's own work included; 1 for all of it.
    python: what is left after that of the host's time between two calls, where that is shorter than phase_ns.
    """

    per_call: float
    floor: float
    driver: float = 1.0
    per_function: float = 0.0
    per_node: float = 0.0
    python: float = 1.0
    phase_ns: float = 0.0

    def durations(self, graph: Graph) -> Floats:
        """The graph's durations (ns) without the profiler."""
        spare = graph.overhead_scalable * (1 - self.floor)
        less = np.zeros(len(graph.duration))
        # A call's own node pays first, then the segment before it: recording goes on a little after a call returned.
        calls = graph.record.calls
        of_call = np.minimum(spare[graph.leave], self.per_call)
        before = self.per_call - of_call + self.per_function * calls.functions
        less[graph.leave] = np.minimum(spare[graph.leave], of_call + self.per_node * calls.nodes)
        less[graph.segment] = np.minimum(spare[graph.segment], before)
        left = graph.host_cpu_ns - less
        between = np.zeros(len(left))
        between[graph.segment] = np.where(graph.duration[graph.segment] < self.phase_ns, left[graph.segment], 0.0)
        less += (1 - self.python) * between
        return np.asarray(graph.duration - less - (1 - self.driver) * (graph.host_cpu_ns - less), dtype=np.float64)


def with_stacks(con: duckdb.DuckDBPyConnection) -> frozenset[int]:
    """Processes that torch.profiler recorded with their Python stacks, which slows the host down most."""
    rows = con.execute(
        "select p.id from process p join input i on i.id = p.input join capability c on c.input = i.id"
        " where i.kind = 'torch' and c.name = 'python_calls' and c.state = 'recorded'"
    ).fetchall()
    return frozenset(process for (process,) in rows)


def in_python(con: duckdb.DuckDBPyConnection) -> frozenset[int]:
    """Processes that run Python, by samples of its stacks: recorded, Python runs slower between the calls as well."""
    rows = con.execute("select distinct t.process from py_sample y join thread t on t.id = y.thread").fetchall()
    return frozenset(process for (process,) in rows)


def plausible(settings: Mapping[str, float], *, stacks: bool = False, python: bool = False) -> tuple[Calibration, ...]:
    """The usual cost of recording first, then the least, then the most that is common.

    stacks: whether torch.profiler recorded every call of a Python function, which no recording got for nothing.
    python: whether the process runs Python, which recording slows down between calls, but not in long phases.
    """
    floor, per_node = settings["replay_host_floor"], settings["replay_graph_node_ns"]
    usual, least = settings["replay_call_ns"], settings["replay_call_ns"] if stacks else 0.0
    drivers, functions = [1.0, 1.0, settings["replay_least_driver"]], [0.0, 0.0, 0.0]
    pythons, phase_ns = [1.0, 1.0], 0.0
    if stacks:
        drivers = [settings[f"replay_stacks_{which}driver"] for which in ("", "most_", "least_")]
        functions = [settings[f"replay_stacks_{which}function_ns"] for which in ("", "least_", "most_")]
    elif python:
        pythons = [settings["replay_python"], settings["replay_least_python"]]
        phase_ns = settings["cpu_phase_ns"]
    return (
        Calibration(usual, floor, drivers[0], functions[0], per_node, pythons[0], phase_ns),
        Calibration(least, floor, drivers[1], functions[1]),
        Calibration(settings["replay_most_call_ns"], floor, drivers[2], functions[2], per_node, pythons[1], phase_ns),
    )


def guesses(
    con: duckdb.DuckDBPyConnection, processes: Sequence[int], settings: Mapping[str, float]
) -> list[tuple[Calibration, ...]]:
    """Return what recording may have cost each of these processes: the usual, the least and the most."""
    stacks, pythons = with_stacks(con), in_python(con)
    each = [plausible(settings, stacks=one in stacks, python=one in pythons) for one in processes]
    return [tuple(one[guess] for one in each) for guess in range(len(plausible(settings)))]


def solve(graph: Graph, wanted_ns: float, settings: Mapping[str, float]) -> Calibration:
    """Return the overhead with which the window takes that long (ns), as near as host time alone can bring it."""
    floor = settings["replay_host_floor"]

    def takes(guess: Calibration) -> float:
        return length(graph, replay(graph, guess.durations(graph)))

    usual = plausible(settings)[0]
    if abs(takes(usual) / wanted_ns - 1) <= settings["replay_same"]:
        return usual  # the host does not set the pace: its time cannot be distinguished from the loop's
    recorded, most = Calibration(0.0, floor), Calibration(settings["replay_max_call_ns"], floor)
    if takes(recorded) <= wanted_ns:  # a slower machine, or a busier one: no longer than that
        slowest = settings["replay_most_host"]
        return _between(lambda x: Calibration(0.0, floor, x), 1.0, slowest, takes, wanted_ns)
    if takes(most) <= wanted_ns:
        return _between(lambda x: Calibration(x, floor), 0.0, most.per_call, takes, wanted_ns)
    least = settings["replay_floor_driver"]
    return _between(lambda x: Calibration(most.per_call, floor, x), least, 1.0, takes, wanted_ns)


def _between(
    guess: Callable[[float], Calibration], low: float, high: float, takes: Callable[[Calibration], float], wanted: float
) -> Calibration:
    """Bisect for the guess that takes as long as wanted; the nearer end when none does."""
    longer_with_more = takes(guess(high)) >= takes(guess(low))
    first, last = takes(guess(low)), takes(guess(high))
    if not min(first, last) <= wanted <= max(first, last):
        return guess(low if abs(first - wanted) < abs(last - wanted) else high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (takes(guess(middle)) > wanted) == longer_with_more:
            high = middle
        else:
            low = middle
    return guess((low + high) / 2)
