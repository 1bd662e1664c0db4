-- The facts of a loop that rules gate on. One row a loop that was analysed.
-- materialised: read by most rules
--   loop: references loop
--   iterations: iterations analysed
--   total_ns: time of those iterations, summed over the devices used (ns)
--   iteration_ns: total_ns per iteration (ns)
--   devices: how many GPUs it used
--   busy_share: part of total_ns in which a GPU worked, 0 to 1
--   idle_share: the rest
--   kernels: kernels and graph launches started
--   kernels_per_iteration: the same per iteration
--   median_kernel_ns: median duration of a kernel (ns); null without kernels
--   median_interval_ns: median time from one launch to the next on the same thread (ns)
--   launches: launch calls made
create view loop_facts as
with slice as (
  select
    loop,
    device,
    "end" - start as ns,
    state <> 'idle' as busy
  from device_state
  union all
  -- a loop that never used a GPU
  select
    loop,
    null,
    "end" - start,
    false
  from steady_interval s
  where not exists (select 1 from steady_interval_device d where d.steady_interval = s.steady_interval)
),
length as (
  select
    loop,
    sum(ns) as total_ns,
    count(distinct device) as devices,
    sum(ns) filter (where busy) as busy_ns
  from slice
  group by loop
),
iterations as (
  select
    loop,
    cast(sum(iterations) as integer) as iterations
  from steady_interval
  group by loop
),
kernels as (
  select
    loop,
    cast(count(*) as integer) as kernels,
    median(duration_ns) as median_kernel_ns
  from loop_gpu_op
  where kind in ('kernel', 'graph')
  group by loop
),
steps as (
  select
    loop,
    start - lag(start) over (partition by thread order by start) as interval_ns
  from call
  where kind in ('launch', 'graph_launch')
),
intervals as (
  select
    loop,
    median(interval_ns) as median_interval_ns,
    cast(count(*) as integer) as launches
  from steps
  group by loop
)
select
  l.loop,
  t.iterations,
  cast(l.total_ns as bigint) as total_ns,
  l.total_ns / t.iterations as iteration_ns,
  cast(l.devices as integer) as devices,
  coalesce(l.busy_ns, 0) / l.total_ns as busy_share,
  1 - coalesce(l.busy_ns, 0) / l.total_ns as idle_share,
  coalesce(k.kernels, 0) as kernels,
  coalesce(k.kernels, 0) / t.iterations as kernels_per_iteration,
  k.median_kernel_ns,
  i.median_interval_ns,
  coalesce(i.launches, 0) as launches
from length l
join iterations t using (loop)
left join kernels k using (loop)
left join intervals i using (loop)
where l.total_ns > 0;
