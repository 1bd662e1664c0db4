-- Where the time of each loop goes: every interval of every device it used, disjoint and complete.
--   loop: references loop
--   device: references device; null for a loop that never used one
--   start: when the interval began (ns)
--   end: when it ended (ns)
--   category: compute, exposed_communication, exposed_copy, idle_launch, idle_sync, idle_input, idle_allocation,
--    idle_other
create view gpu_time_slice as
select
  loop,
  device,
  start,
  "end",
  category
from idle_interval
union all
select
  loop,
  device,
  start,
  "end",
  case state when 'communication' then 'exposed_communication' when 'copy' then 'exposed_copy' else 'compute' end
from device_state
where state <> 'idle'
union all
select
  loop,
  null,
  start,
  "end",
  'idle_other'
from steady_interval s
where not exists (select 1 from steady_interval_device d where d.steady_interval = s.steady_interval);
