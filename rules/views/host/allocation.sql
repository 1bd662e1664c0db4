-- A device allocation or free that a loop made.
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   thread: references thread
--   path: innermost NVTX range
--   name: the function
--   kind: alloc, free or host_alloc
--   duration_ns: how long it took (ns)
--   idle_ns: idle GPU time: in it, and after a free had drained the queue (ns)
create view allocation as
select
  c.id as api_call,
  c.loop,
  c.iteration,
  c.thread,
  p.path,
  c.name,
  c.kind,
  c."end" - c.start as duration_ns,
  cast(coalesce(i.ns, 0) as bigint) as idle_ns
from call c
left join call_place p on p.api_call = c.id
left join (
  select
    api_call,
    sum(ns) as ns
  from (
    select
      api_call,
      "end" - start as ns
    from idle_interval
    where doing = 'call' and call_kind in ('alloc', 'free', 'host_alloc') and cause_call is distinct from api_call
    union all
    select
      cause_call,
      "end" - start
    from idle_interval
    where cause_kind in ('alloc', 'free', 'host_alloc')
      and not (doing = 'call' and coalesce(call_kind in ('alloc', 'free', 'host_alloc'), false))
  )
  group by api_call
) i on i.api_call = c.id
where c.kind in ('alloc', 'free', 'host_alloc');
