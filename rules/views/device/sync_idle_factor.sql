-- Idle time attributed to each nanosecond of synchronisation. Without its waits a loop could not be shorter than its
-- GPU work, nor than what its host does between them; the host runs up to settings.host_inflation times slower under
-- the profiler. Where even then the host needs longer than the GPU, the loop gains what the waits take and no more; the
-- further the host could get ahead of the GPU, the more of the idle time follows from the waits.
-- materialised: looked up for each wait
--   loop: references loop
--   factor: idle time that follows from a wait, in units of the wait's length, at least 1
--   most_factor: the same if all that is longer than the GPU's work or the unprofiled host's follows from the waits
create view sync_idle_factor as
with length as (
  select
    loop,
    sum("end" - start) as ns
  from steady_interval
  group by loop
),
-- a loop on several devices is paced by the busiest
busy as (
  select
    loop,
    max(ns) as ns
  from (
    select
      loop,
      device,
      sum("end" - start) as ns
    from device_state
    where state <> 'idle'
    group by loop, device
  )
  group by loop
),
waited as (
  select
    c.loop,
    sum(c."end" - c.start) as ns,
    count(distinct c.iteration) as iterations
  from call c
  join host_blocking_call h on h.id = c.id
  join steady_interval s on s.loop = c.loop and s.process = c.process and s.thread = c.thread
  where h.waits and c.start >= s.start and c.start < s."end"
  group by c.loop
),
-- waiting for input takes as long without the profiler
fetched as (
  select
    h.loop,
    sum(h."end" - h.start) as ns
  from host_segment h
  join steady_interval s on s.loop = h.loop and s.thread = h.thread and h.start >= s.start and h.start < s."end"
  where h.fetches_input
  group by h.loop
),
-- iterations without a wait say nothing of it
paced as (
  select
    l.loop,
    l.ns * p.part as ns,
    w.ns as waited_ns,
    coalesce(b.ns, 0) * p.part as busy_ns,
    greatest(0, least(coalesce(i.ns, 0) * p.part, l.ns * p.part - w.ns)) as fetched_ns
  from length l
  join waited w using (loop)
  join (
    select
      w.loop,
      least(1, w.iterations / count(*)) as part
    from waited w
    join analysed_iteration a using (loop)
    group by w.loop, w.iterations
  ) p using (loop)
  left join busy b using (loop)
  left join fetched i using (loop)
  where w.ns > 0
)
select
  loop,
  greatest(
    1,
    least(ns - busy_ns, waited_ns + busy_ns - fetched_ns - (ns - waited_ns - fetched_ns) / setting('host_inflation'))
      / waited_ns
  ) as factor,
  greatest(
    1,
    (ns - greatest(busy_ns, fetched_ns + (ns - waited_ns - fetched_ns) / setting('host_inflation'))) / waited_ns
  ) as most_factor
from paced;
