-- A launch call that took more than twice as long as the loop's typical one while the GPU was idle, but the first of a
-- kernel, in which the driver loads its code.
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   duration_ns: how long it took (ns)
--   median_ns: median launch of the loop (ns)
--   idle_ns: idle GPU time in it (ns)
--   explained_ns: time in it that the thread spent in traced system calls, such as waits for a lock, or that the
--    profiler took (ns)
create view slow_launch as
with typical as (
  select
    loop,
    median("end" - start) as ns
  from call
  where kind = 'launch'
  group by loop
),
slow as (
  select
    c.id,
    c.loop,
    c.iteration,
    c.thread,
    c.start,
    c."end",
    t.ns as median_ns
  from call c
  join typical t using (loop)
  where c.kind = 'launch' and c."end" - c.start > 2 * t.ns
),
loading as (
  select o.api_call
  from gpu_op o
  join kernel_first_run f on f.process = o.process and f.name = o.name and f.start = o.start
  where o.kind = 'kernel' and o.api_call in (select id from slow)
),
idle as (
  select
    api_call,
    sum("end" - start) as ns
  from idle_interval
  where doing = 'call' and api_call in (select id from slow) and api_call not in (select api_call from loading)
  group by api_call
),
explained as (
  select
    s.id,
    sum(least(w."end", s."end") - w.start) as ns
  from (
    select
      thread,
      start,
      "end"
    from os_call
    where thread in (select thread from slow)
  ) w
  asof join slow s on w.thread = s.thread and s.start <= w.start
  where w.start < s."end"
  group by s.id
  union all
  select
    s.id,
    sum(least(v."end", s."end") - greatest(v.start, s.start))
  from slow s
  join overhead v on v.start < s."end" and v."end" > s.start
  group by s.id
)
select
  s.id as api_call,
  s.loop,
  s.iteration,
  s."end" - s.start as duration_ns,
  s.median_ns,
  cast(i.ns as bigint) as idle_ns,
  cast(coalesce(e.ns, 0) as bigint) as explained_ns
from slow s
join idle i on i.api_call = s.id
left join (
  select
    id,
    sum(ns) as ns
  from explained
  group by id
) e on e.id = s.id;
