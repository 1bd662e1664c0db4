-- Idle time while the driver takes free blocks of a stream-ordered pool back, in a wait that goes on after the GPU is
-- done, and while an allocation from the pool asks it for memory again.
--   idle_interval: references idle_interval
--   loop: references loop
--   iteration: references iteration
--   api_call: the wait, or the allocation (references api_call)
--   ns: how long it is (ns)
--   waits: whether it is in the wait
create view pool_release as
with idle as (
  select
    p.idle_interval,
    c.loop,
    c.iteration,
    c.id as api_call,
    p."end" - p.start as ns,
    c.kind = 'sync' as waits
  from idle_interval p
  join gap g on g.gap = p.gap
  join call c on c.id = p.api_call
  where p.doing = 'call'
    and (
      c.kind = 'sync'
        and g.start > c.start
        and g."end" >= c."end"
        and c."end" - g.start >= setting('pool_release_ns')
        or c.kind = 'pool'
        and not contains(c.name, 'Free')
        and c."end" - c.start >= setting('pool_release_ns')
    )
),
-- an allocation that hides behind the GPU's work is no idle time, but tells that the pool had given its memory back
asking as (
  select
    loop,
    count(distinct iteration) as iterations
  from call
  where kind = 'pool' and not contains(name, 'Free') and "end" - start >= setting('pool_release_ns')
  group by loop
),
held as (
  select
    loop,
    count(distinct iteration) as iterations
  from idle
  where waits
  group by loop
)
select i.*
from idle i
join asking a using (loop)
join held h using (loop)
join loop_facts f using (loop)
where least(a.iterations, h.iterations) >= setting('most_share') * f.iterations;
