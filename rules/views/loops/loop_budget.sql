-- The time budget of each loop.
-- materialised: read by most rules and by the report
--   loop: references loop
--   category: see gpu_time_slice
--   ns: time in it, summed over iterations and devices (ns)
--   share: its part of the loop's time, 0 to 1
create view loop_budget as
select
  loop,
  category,
  cast(sum("end" - start) as bigint) as ns,
  sum("end" - start) / sum(sum("end" - start)) over (partition by loop) as share
from gpu_time_slice
group by loop, category;
