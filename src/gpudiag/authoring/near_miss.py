"""Find the threshold that keeps a rule from firing, or lets it fire: the one that alone changes the outcome.

A query does not say which of its conditions failed. Running it with one threshold after the other moved does, and
halving the way to the value at which the outcome changes gives the figure that the threshold was compared with.
"""

from __future__ import annotations

import duckdb

from gpudiag.model import Rule
from gpudiag.store import query

Connection = duckdb.DuckDBPyConnection

# Bounds on the work for one failing case: a user's rule has ten seconds for all of its cases.
_PARAMS = 12
_HALVINGS = 14
_NAMED = 2
_ELSEWHERE = (
    "none of its thresholds alone keeps it quiet, so look at shared settings and at what the query joins and filters"
)
_FACTORS = (0.5, 2.0, 0.0, 10.0, 1e4, 1e8)  # small steps first: the nearer the bracket, the finer the result


def hint(rule: Rule, con: Connection, *, expected: bool) -> str:
    """Say at which value of a threshold the outcome changes; empty where the rule has none or cannot be run.

    `expected`: whether the case expects rows. Where the query gives them, another rule has taken them.
    """
    values = {name: param.value for name, param in rule.params.items()}
    try:
        fires = _fires(rule, con, values)
        if fires is expected:
            return f"its query gives rows, of which {' or '.join(rule.yields_to)} speaks" if rule.yields_to else ""
        found = [
            f"{name} {edge} (it is {values[name]:.4g} {rule.params[name].unit})"
            for name in list(values)[:_PARAMS]
            if (edge := _edge(rule, con, values, name, fires))
        ]
    except duckdb.InternalException:
        raise
    except duckdb.Error:
        return ""
    if not values:
        return ""
    if not found:
        return "" if fires else _ELSEWHERE
    return f"it would {'stay quiet' if fires else 'fire'} with {', or with '.join(found[:_NAMED])}"


def _edge(rule: Rule, con: Connection, values: dict[str, float], name: str, fires: bool) -> str:
    """Beyond which value of one threshold, nearest to its own, the outcome is another; empty if there is none."""
    own = values[name]
    for factor in _FACTORS:
        far = own * factor if own else factor - 0.5
        if far == own or _fires(rule, con, values | {name: far}) is fires:
            continue
        near = own
        for _ in range(_HALVINGS):
            half = (near + far) / 2
            if _fires(rule, con, values | {name: half}) is fires:
                near = half
            else:
                far = half
        return f"{'above' if far > own else 'below'} {near:.4g}"
    return ""


def _fires(rule: Rule, con: Connection, values: dict[str, float]) -> bool:
    return bool(query.run(con, rule.query, values, limit=1))
