"""Iterations from calls of an nn.Module: of the outermost one that was called again and again.

Layers repeat within an iteration and look alike, but each is a module of its own, called once in it.
"""

from __future__ import annotations

import duckdb
import numpy as np

from gpudiag.loops.iteration_bounds import Found, Iterations, Settings, kernel_work

Connection = duckdb.DuckDBPyConnection

_CALLED = """
with launch as (
    select a.thread, a.start, count(*) as kernels, sum(o."end" - o.start) as ns
    from gpu_op o join api_call a on a.id = o.api_call
    where o.process = $process and o.kind in ('kernel', 'graph') group by all
), so_far as (
    select thread, start, sum(kernels) over w as kernels, sum(ns) over w as ns
    from launch window w as (partition by thread order by start)
), called as (
    select m.name, m.thread, m.start, m.depth, coalesce(e.kernels, 0) - coalesce(b.kernels, 0) as kernels,
           coalesce(e.ns, 0) - coalesce(b.ns, 0) as ns
    from module_call m asof left join so_far b on b.thread = m.thread and b.start < m.start
    asof left join so_far e on e.thread = m.thread and e.start <= m."end" where m.process = $process
)
select any_value(n.text), c.thread, list(c.start order by c.start), min(c.depth), sum(c.kernels), sum(c.ns)
from called c join name n on n.id = c.name group by c.name, c.thread
order by sum(c.kernels) desc, min(c.depth), any_value(n.text), c.thread
"""
"""Modules by the kernels that their calls launched: name, thread, starts (ns), depth, kernels and their time (ns)."""


def loops_from_modules(con: Connection, process: int, settings: Settings) -> list[Found] | None:
    """The loop of the module whose calls stand for what the process does; none where a single call does.

    None where no module stands for it. An iteration lasts from one call to the next, so that what follows a forward
    pass belongs to it; after the last call nothing says where the iteration ends, so it does not count.
    """
    rows = con.execute(_CALLED, {"process": process}).fetchall()
    whole, least = kernel_work(con, process), settings["min_coverage"]
    single = False
    for name, thread, starts, depth, kernels, ns in rows:
        bounds = np.array([starts[:-1], starts[1:]], dtype=np.int64).T
        inside = kernels, ns
        if depth == 0 and len(bounds):  # a backward pass follows the call; the last one's is not known to end
            ns, kernels = kernel_work(con, process, bounds)
            inside = kernels * len(starts) / len(bounds), ns * len(starts) / len(bounds)
        enough = inside[0] >= least * whole[1] or inside[1] >= least * whole[0]
        if kernels >= settings["min_ops"] and enough:
            if len(bounds):
                return [Found(name, None, "period", [Iterations(process, thread, bounds)])]
            single = True
    return [] if single else None
