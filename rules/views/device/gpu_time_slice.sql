-- Where the time of each loop goes: every interval of every device it used, disjoint and complete.
--   loop: references loop
--   device: references device; null for a loop that never used one
--   start: when the interval began (ns)
--   end: when it ended (ns)
--   leaf: its place in the time tree: computing, exposed_communication, exposed_copy, or as idle_interval has it
--   category: its place in the budget; see the macro budget_category
create view gpu_time_slice as
with slice as (
  select
    loop,
    device,
    start,
    "end",
    leaf
  from idle_interval
  union all
  select
    loop,
    device,
    start,
    "end",
    case state when 'communication' then 'exposed_communication' when 'copy' then 'exposed_copy' else 'computing' end
  from device_state
  where state <> 'idle'
  union all
  select
    loop,
    null,
    start,
    "end",
    'host_work'
  from steady_interval s
  where not exists (select 1 from steady_interval_device d where d.steady_interval = s.steady_interval)
)
select
  loop,
  device,
  start,
  "end",
  leaf,
  budget_category(leaf) as category
from slice;
