-- Device memory that an iteration allocated, from the driver or from its framework's pool.
-- materialised: joins changes of memory with iterations and calls once
--   loop: references loop
--   iteration: references iteration
--   process: references process
--   device: references device
--   time: when it was allocated (ns)
--   bytes: its size (B)
--   held_bytes: what the program held then, with it (B)
--   aside: whether another thread than the loop's asked for it: in PyTorch the backward pass; null where no thread is
--    recorded
--   kept: whether it was still held when the recording ended; null where no address is recorded
--   api_call: the next call of its thread, which mostly fills it (references api_call)
create view loop_allocation as
with change as (
  select
    *,
    lead(time) over (partition by process, device, address order by time, change_bytes) as next_time
  from memory_level
),
inside as (
  select
    i.loop,
    i.iteration,
    i.thread as loop_thread,
    m.*
  from (
    select
      l.loop,
      c.*
    from change c
    join (
      select distinct
        loop,
        process
      from analysed_iteration
    ) l on l.process = c.process
    where c.change_bytes > 0
  ) m
  asof join analysed_iteration i on i.loop = m.loop and i.process = m.process and i.start <= m.time
  where m.time < i."end"
)
select
  n.loop,
  n.iteration,
  n.process,
  n.device,
  n.time,
  n.change_bytes as bytes,
  n.held_bytes,
  n.thread <> n.loop_thread as aside,
  case when n.address is not null then n.next_time is null end as kept,
  c.id as api_call
from inside n
asof left join analysed_api_call c on c.thread = n.thread and c.start >= n.time;
