-- A stretch in which a GPU had nothing to do, inside a steady_interval, and what ended it.
-- materialised: several views look at gaps from different sides
--   gap: dense identifier
--   steady_interval: references steady_interval
--   loop: references loop
--   process: references process
--   device: references device
--   start: when the GPU ran dry (ns)
--   end: when the next operation began, or the steady_interval ended (ns)
--   next_op: the operation that ended it; null at the steady_interval's end
--   next_call: the call that started that operation, when traced
--   thread: the thread that made that call, else the loop's
create view gap as
with idle as (
  select
    row_number() over (order by d.steady_interval, d.device, d.start) - 1 as gap,
    d.steady_interval,
    d.loop,
    s.process,
    d.device,
    d.start,
    d."end",
    s.thread as loop_thread
  from device_state d
  join steady_interval s using (steady_interval)
  where d.state = 'idle'
),
first_op as (
  select
    device,
    start,
    min(id) as op
  from analysed_gpu_op
  group by device, start
)
select
  cast(i.gap as integer) as gap,
  i.steady_interval,
  i.loop,
  i.process,
  i.device,
  i.start,
  i."end",
  o.id as next_op,
  o.api_call as next_call,
  coalesce(a.thread, i.loop_thread) as thread
from idle i
left join first_op f on f.device = i.device and f.start = i."end"
left join analysed_gpu_op o on o.id = f.op
left join analysed_api_call a on a.id = o.api_call;
