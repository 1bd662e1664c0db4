-- How much more than the others a rank of a job does itself in an iteration, whatever it waits: between its
-- collectives. The others are the ranks that do least (`job_base_part`).
--   member: references job_rank
--   loop: references loop, of the reference rank
--   step: 0 for the first iteration analysed
--   own_ns: time of its own work: computing, copying, and its GPU without anything to do (ns)
--   base_ns: the same of the others (ns)
--   more_ns: how much more it is (ns)
--   compute_ns: its part in which its GPU computed (ns)
--   copy_ns: its part in which its GPU only copied (ns)
--   idle_ns: its part in which its GPU had nothing to do (ns)
--   wait_ns: time in which its GPU only waited for other ranks (ns)
--   iteration_ns: mean length of an iteration of the job (ns)
create view job_work as
with own as (
  select
    *,
    compute_ns + copy_ns + idle_ns as own_ns
  from job_iteration
)
select
  member,
  loop,
  step,
  own_ns,
  quantile_cont(own_ns, job_base_part()) over (partition by step) as base_ns,
  own_ns - quantile_cont(own_ns, job_base_part()) over (partition by step) as more_ns,
  compute_ns,
  copy_ns,
  idle_ns,
  wait_ns,
  avg("end" - start) over () as iteration_ns
from own;
