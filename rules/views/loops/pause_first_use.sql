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
)
select distinct
  h.loop,
  h.process,
  h.start
from held h
join kernel_first_run f using (process, name)
where f.start >= h.start;
