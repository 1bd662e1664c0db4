-- The time budget of each loop: its time tree in fewer words.
-- materialised: read by most rules and by the report
--   loop: references loop
--   category: see gpu_time_slice
--   ns: time in it, summed over iterations and devices (ns)
--   share: its part of the loop's time, 0 to 1
create view loop_budget as
select
  loop,
  budget_category(leaf) as category,
  cast(sum(ns) as bigint) as ns,
  sum(ns) / sum(sum(ns)) over (partition by loop) as share
from loop_tree
group by loop, category;
