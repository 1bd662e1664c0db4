-- A GPU that a steady_interval used.
-- materialised: joins every operation with its steady_interval once
--   steady_interval: references steady_interval
--   loop: references loop
--   process: references process
--   device: references device
--   start: the steady_interval's beginning (ns)
--   end: the steady_interval's end (ns)
create view steady_interval_device as
select
  s.steady_interval,
  s.loop,
  s.process,
  o.device,
  s.start,
  s."end"
from (
  select distinct
    loop,
    process
  from steady_interval
) l
join (
  select distinct
    s.loop,
    o.process,
    o.device
  from analysed_gpu_op o
  asof join steady_interval s on o.process = s.process and s.start <= o.start
  where o.start < s."end"
) o on o.loop = l.loop
  and o.process = l.process
join steady_interval s on s.loop = l.loop and s.process = l.process;
