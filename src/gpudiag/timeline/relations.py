"""Relations for the tracks of a timeline, which `merge` reads: ranges, host calls, what each GPU did, streams.

Each wants $begin and $end. `analysed_` tables hold only what happened around the analysed iterations; the whole run is
in the tables that they are made from.
"""

from __future__ import annotations

_CLIP = (
    'greatest({t}.start, $begin) - $begin as start, least({t}."end", $end) - $begin as "end"',
    '{t}.start < $end and {t}."end" > $begin',
)


def _clip(alias: str) -> tuple[str, str]:
    return _CLIP[0].format(t=alias), _CLIP[1].format(t=alias)


_TIMES_R, _WITHIN_R = _clip("r")
_TIMES_C, _WITHIN_C = _clip("c")
_TIMES_O, _WITHIN_O = _clip("o")
_TIMES_P, _WITHIN_P = _clip("p")
_TIMES_D, _WITHIN_D = _clip("d")

RANGES = f"""
    select cast(r.depth as varchar) as lane, 'range' as kind, r.name, {_TIMES_R} from nvtx_range r
    where r.thread = $thread and r.kind = 'push_pop' and r.depth < $deepest and r.domain is null and {_WITHIN_R}
"""

_CALL_KIND = """case k.kind when 'graph_launch' then 'launch' when 'sync' then 'wait' when 'set' then 'copy_call'
    when 'copy' then 'copy_call' when 'launch' then 'launch' when 'alloc' then 'memory' when 'free' then 'memory'
    when 'pool' then 'memory' when 'host_alloc' then 'memory' else 'call' end"""


def calls(table: str) -> str:
    """Outermost CUDA calls of $threads, a lane a thread. table: analysed_api_call or api_call."""
    outermost = " and c.parent is null" if table == "api_call" else ""
    return f"""
        select cast(c.thread as varchar) as lane, {_CALL_KIND} as kind, c.name, {_TIMES_C}
        from {table} c join api_name k on k.id = c.name
        where c.thread in (select unnest($threads::bigint[])) and {_WITHIN_C}{outermost}
    """


def operations(table: str) -> str:
    """Select GPU operations, a lane a stream; streams outside $streams share one. table: analysed_gpu_op or gpu_op."""
    return f"""
        select case when o.stream in (select unnest($streams::bigint[])) then cast(o.stream as varchar)
                    else 'other' end as lane,
               case when o.kind = 'memset' then 'set' when o.kind = 'graph' then 'graph'
                    when o.kind = 'memcpy' and ends_with(o.copy_kind, 'host_to_device') then 'to_gpu'
                    when o.kind = 'memcpy' and ends_with(o.copy_kind, 'device_to_host') then 'to_host'
                    when o.kind = 'memcpy' then 'copy' when n.exchanges then 'communication' else 'kernel' end as kind,
               o.name, {_TIMES_O}
        from {table} o
        left join (select id, op_class('kernel', short) = 'communication' as exchanges from name) n on n.id = o.name
        where ($process is null or o.process = $process) and {_WITHIN_O}
    """


# Idle time is named after the call that it follows from.
GPU_TIME = f"""
    select cast(p.device as varchar) as lane, p.category as kind, c.name, {_TIMES_P}
    from idle_interval p join gap g using (gap)
        left join analysed_api_call c on c.id = coalesce(p.cause_call, p.api_call)
    where ($loop is null or p.loop = $loop) and ($process is null or g.process = $process) and {_WITHIN_P}
    union all
    select cast(d.device as varchar),
           case d.state when 'communication' then 'exposed_communication'
                        when 'copy' then 'exposed_copy' else 'compute' end,
           null, {_TIMES_D}
    from device_state d join steady_interval s using (steady_interval)
    where d.state <> 'idle' and ($loop is null or d.loop = $loop) and ($process is null or s.process = $process)
          and {_WITHIN_D}
"""

PHASES = f"""
    select 'phase' as lane, p.kind, null as name, {_TIMES_P} from "window" p where p.process = $process and {_WITHIN_P}
"""

ITERATIONS = f"""
    select cast(p.loop as varchar) as lane, case when p.in_steady_state then 'iteration' else 'warm_up' end as kind,
           null as name, {_TIMES_P}
    from iteration p where p.process = $process and p.loop in (select unnest($loops::bigint[])) and {_WITHIN_P}
"""

# What a finding's id lists refer to.
MARKED = {
    "api_calls": ("analysed_api_call", "id"),
    "gpu_ops": ("analysed_gpu_op", "id"),
    "profiles": ("analysed_gpu_op", "id"),
    "idle_intervals": ("idle_interval", "idle_interval"),
    "ranges": ("nvtx_range", "id"),
}


def marks(on: str) -> str:
    """The intervals that $ids name, those of $process only where it is given."""
    table, key = MARKED[on]
    if table == "idle_interval":
        source, process, name = "idle_interval p join gap g using (gap)", "g.process", "null"
    else:
        source, process, name = f"{table} p", "p.process", "p.name"
    return f"""
        select 'mark' as lane, $kind as kind, {name} as name, {_TIMES_P} from {source}
        where p.{key} in (select unnest($ids::bigint[])) and ($process is null or {process} = $process) and {_WITHIN_P}
    """
