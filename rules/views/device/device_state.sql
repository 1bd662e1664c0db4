-- What a GPU was doing, over each steady_interval that used it: disjoint, complete, in time order. All streams
-- together; a CUDA graph launch counts as compute; idle shorter than settings.idle_noise_ns counts as the state before
-- it, unless all of it together is more than settings.idle_noise_share of the loop.
-- materialised: the budget, the gaps and every price rest on it
--   steady_interval: references steady_interval
--   loop: references loop
--   device: references device
--   start: when the state began (ns)
--   end: when it ended (ns)
--   state: compute, communication, copy or idle (compute hides communication, which hides copies)
create view device_state as
with op as (
  select
    o.device,
    o.start,
    o."end",
    op_class(o.kind, n.short) as class
  from analysed_gpu_op o
  left join name n on n.id = o.name
),
change as (
  select
    s.steady_interval,
    s.loop,
    s.device,
    greatest(o.start, s.start) as t,
    o.class,
    1 as step
  from op o
  asof join steady_interval_device s on o.device = s.device and s.start <= o.start
  where o.start < s."end"
  union all
  select
    s.steady_interval,
    s.loop,
    s.device,
    least(o."end", s."end"),
    o.class,
    -1
  from op o
  asof join steady_interval_device s on o.device = s.device and s.start <= o.start
  where o.start < s."end"
  union all
  select
    steady_interval,
    loop,
    device,
    start,
    'none',
    0
  from steady_interval_device
  union all
  select
    steady_interval,
    loop,
    device,
    "end",
    'none',
    0
  from steady_interval_device
),
summed as (
  select
    steady_interval,
    loop,
    device,
    t,
    sum(case when class = 'compute' then step else 0 end) as compute,
    sum(case when class = 'communication' then step else 0 end) as communication,
    sum(case when class = 'copy' then step else 0 end) as copy
  from change
  group by steady_interval, loop, device, t
),
running as (
  select
    steady_interval,
    loop,
    device,
    t,
    lead(t) over (w) as until,
    sum(compute) over (w) as compute,
    sum(communication) over (w) as communication,
    sum(copy) over (w) as copy
  from summed
  window w as (partition by steady_interval, device order by t)
),
named as (
  select
    *,
    case
      when compute > 0 then 'compute'
      when communication > 0 then 'communication'
      when copy > 0 then 'copy'
      else 'idle'
    end as raw_state
  from running
  where until > t
),
-- where short gaps add up to a part of the loop that matters, they are idle time
gaps as (
  select
    loop,
    sum(until - t) filter (
      where raw_state = 'idle' and until - t < setting('idle_noise_ns')
    ) > setting('idle_noise_share') * sum(until - t) as matter
  from named
  group by loop
),
smoothed as (
  select
    n.*,
    case
      when n.raw_state = 'idle'
        and n.until - n.t < setting('idle_noise_ns')
        and not coalesce(g.matter, false) then coalesce(lag(n.raw_state) over (w), 'compute')
      else n.raw_state
    end as state
  from named n
  join gaps g using (loop)
  window w as (partition by n.steady_interval, n.device order by n.t)
),
marked as (
  select
    *,
    case when state = lag(state) over (partition by steady_interval, device order by t) then 0 else 1 end as begins
  from smoothed
),
grouped as (
  select
    *,
    sum(begins) over (partition by steady_interval, device order by t) as stretch
  from marked
)
select
  steady_interval,
  any_value(loop) as loop,
  device,
  min(t) as start,
  max(until) as "end",
  any_value(state) as state
from grouped
group by steady_interval, device, stretch;
