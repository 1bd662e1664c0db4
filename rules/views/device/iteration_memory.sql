-- The device memory of an iteration, where memory was recorded.
-- materialised: read by all rules about memory
--   loop: references loop
--   iteration: references iteration
--   process: references process
--   device: references device
--   start: when the iteration began (ns)
--   start_bytes: what the program held when it began (B)
--   peak_bytes: the most that it held (B)
--   peak_call: the call after the allocation that reached this; null where none did (references api_call)
--   allocated_bytes: sum of what it allocated (B)
--   aside_bytes: of that, what other threads than the loop's asked for: in PyTorch the backward pass (B)
--   kept_bytes: of that, what was still held when the recording ended; null where no address is recorded (B)
--   reserved_bytes: the most that the pool had from the driver; null without a pool (B)
--   unused_bytes: of what the pool had at the peak, what the program did not hold; null without a pool (B)
--   returned_bytes: what the pool gave back to the driver (B)
create view iteration_memory as
with place as (
  select
    i.loop,
    i.iteration,
    i.process,
    i.start,
    i."end",
    m.device
  from analysed_iteration i
  join (
    select distinct
      process,
      device
    from memory_level
  ) m on m.process = i.process
),
-- the first change tells what was held before it
level as (
  select
    process,
    device,
    time,
    change_bytes,
    held_bytes,
    reserved_bytes,
    coalesce(lag(reserved_bytes) over w - reserved_bytes, 0) as returned_bytes
  from memory_level
  window w as (partition by process, device order by time, change_bytes)
  union all
  select
    process,
    device,
    -1,
    0,
    arg_min(held_bytes - change_bytes, (time, change_bytes)),
    arg_min(reserved_bytes, (time, change_bytes)),
    0
  from memory_level
  group by process, device
),
began as (
  select
    p.*,
    l.held_bytes as start_bytes,
    l.reserved_bytes as start_reserved
  from place p
  asof join level l on l.process = p.process and l.device = p.device and l.time <= p.start
),
changed as (
  select
    b.iteration,
    b.device,
    max(l.held_bytes) as peak_bytes,
    max(l.reserved_bytes) as reserved_bytes,
    arg_max(l.reserved_bytes - l.held_bytes, l.held_bytes) as unused_bytes,
    sum(l.returned_bytes) filter (l.returned_bytes > 0) as returned_bytes
  from (
    select
      p.loop,
      l.*
    from level l
    join (
      select distinct
        loop,
        process
      from place
    ) p on p.process = l.process
  ) l
  asof join began b on b.loop = l.loop and b.process = l.process and b.device = l.device and b.start <= l.time
  where l.time < b."end"
  group by b.iteration, b.device
),
allocated as (
  select
    iteration,
    device,
    sum(bytes) as allocated_bytes,
    sum(bytes) filter (aside) as aside_bytes,
    sum(case when kept then bytes else 0 end) filter (kept is not null) as kept_bytes,
    arg_max(api_call, held_bytes) as peak_call,
    max(held_bytes) as held_bytes
  from loop_allocation
  group by iteration, device
)
select
  b.loop,
  b.iteration,
  b.process,
  b.device,
  b.start,
  cast(b.start_bytes as bigint) as start_bytes,
  cast(greatest(b.start_bytes, coalesce(c.peak_bytes, 0)) as bigint) as peak_bytes,
  case when a.held_bytes > b.start_bytes then a.peak_call end as peak_call,
  cast(coalesce(a.allocated_bytes, 0) as bigint) as allocated_bytes,
  cast(coalesce(a.aside_bytes, 0) as bigint) as aside_bytes,
  cast(a.kept_bytes as bigint) as kept_bytes,
  cast(greatest(b.start_reserved, c.reserved_bytes) as bigint) as reserved_bytes,
  cast(coalesce(c.unused_bytes, b.start_reserved - b.start_bytes) as bigint) as unused_bytes,
  cast(coalesce(c.returned_bytes, 0) as bigint) as returned_bytes
from began b
left join changed c using (iteration, device)
left join allocated a using (iteration, device);
