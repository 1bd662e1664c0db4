-- A pause of a loop in which, or right after which, a kernel runs that the process had not run before: what the host
-- did in it may have been needed once.
--   loop: references loop
--   process: references process
--   start: when the pause began (ns)
--   compiles: whether the Python samples in it were mostly inside a compiler
create view pause_first_use as
with held as (
  select distinct
    p.loop,
    p.process,
    p.start
  from loop_pause p
  join kernel_first_run f on f.process = p.process and f.start between p.start and p."end" + p.iteration_ns
)
select
  h.loop,
  h.process,
  h.start,
  coalesce(any_value(s.compiles), false) as compiles
from held h
left join (
  select
    loop,
    process,
    start,
    count(*) filter (compiles) >= setting('most_share') * count(*) as compiles
  from pause_sample
  group by loop, process, start
) s on s.loop = h.loop
  and s.process = h.process
  and s.start = h.start
group by h.loop, h.process, h.start;
