-- Idle time while the driver takes free blocks of a stream-ordered pool back, in a wait that goes on after the GPU is
-- done, or that has nothing to wait for, and while an allocation from the pool asks it for memory again. Of loops on
-- one GPU that do both in most iterations.
--   idle_interval: references idle_interval
--   loop: references loop
--   iteration: references iteration
--   api_call: the wait, or the allocation (references api_call)
--   ns: how long it is (ns)
--   waits: whether it is in the wait
create view pool_release as
with called as (
  select
    id,
    loop,
    iteration,
    thread,
    seq,
    start,
    "end",
    kind,
    name,
    count_if(queues_host_function(name)) over (partition by thread order by seq) as functions
  from call
  where loop in (select loop from pool_request)
),
-- a host function that was queued since the wait before holds a wait as well
after_function as (
  select
    id,
    functions > coalesce(lag(functions) over (partition by thread order by seq), 0) as held
  from called
  where kind = 'sync' and not contains(name, 'Event')
),
idle as (
  select
    p.idle_interval,
    c.loop,
    c.iteration,
    c.id as api_call,
    p."end" - p.start as ns,
    c.kind = 'sync' as waits
  from idle_interval p
  join gap g on g.gap = p.gap
  join called c on c.id = p.api_call
  left join after_function a on a.id = c.id
  where p.doing = 'call'
    and (
      c.kind = 'sync'
        and g."end" >= c."end"
        and c."end" - greatest(g.start, c.start) >= setting('pool_release_ns')
        and not coalesce(a.held, false)
        or c.id in (select api_call from pool_request)
    )
)
select i.*
from idle i
join loop_facts f using (loop)
where f.devices = 1
  and least(
    (select count(distinct r.iteration) from pool_request r where r.loop = i.loop),
    (select count(distinct w.iteration) from idle w where w.loop = i.loop and w.waits)
  ) >= setting('most_share') * f.iterations;
