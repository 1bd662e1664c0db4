-- A pause of a loop in which, or right after which, a kernel runs that the process had not run before: what the host
-- did in it may have been needed once.
--   loop: references loop
--   process: references process
--   start: when the pause began (ns)
create view pause_first_use as
with held as (
  select distinct
    p.loop,
    p.process,
    p.start,
    o.name
  from loop_pause p
  join gpu_op o on o.process = p.process and o.start between p.start and p."end" + p.iteration_ns
  where o.kind = 'kernel'
),
begun as (
  select
    process,
    name,
    min(start) as time
  from gpu_op
  where kind = 'kernel'
    and (process, name) in (
      select
        process,
        name
      from held
    )
  group by process, name
)
select distinct
  h.loop,
  h.process,
  h.start
from held h
join begun b using (process, name)
where b.time >= h.start;
