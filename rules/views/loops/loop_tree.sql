-- The time tree of each loop: its leaves are disjoint and add up to all its time.
-- materialised: the budget and the report read it
--   loop: references loop
--   leaf: see gpu_time_slice
--   ns: time in it, summed over iterations and devices (ns)
--   share: its part of the loop's time, 0 to 1
create view loop_tree as
select
  loop,
  leaf,
  cast(sum("end" - start) as bigint) as ns,
  sum("end" - start) / sum(sum("end" - start)) over (partition by loop) as share
from gpu_time_slice
group by loop, leaf;
