-- How much a loop used one kernel in one launch configuration. NCCL's are left out: most of their time can be
-- waiting.
--   loop: references loop
--   name: the kernel's full name
--   short: its base name
--   grid: number of blocks
--   block: threads a block
--   launches: how often it ran
--   total_ns: summed duration (ns)
--   median_ns: median duration (ns)
--   share: its part of the loop's time, never more than the loop's busy share
--   sm_count: multiprocessors of the device
--   max_warps: warps that one of them holds
--   cc_major: its compute capability, major
--   gpu_ops: its operations (references gpu_op)
create view kernel_use as
select
  w.loop,
  w.name,
  min(w.short) as short,
  o.grid,
  o.block,
  cast(count(*) as integer) as launches,
  cast(sum(w.duration_ns) as bigint) as total_ns,
  median(w.duration_ns) as median_ns,
  least(sum(w.duration_ns) / any_value(f.total_ns), any_value(f.busy_share)) as share,
  any_value(d.sm_count) as sm_count,
  any_value(d.max_warps_per_sm) as max_warps,
  any_value(d.cc_major) as cc_major,
  list(w.op order by w.op) as gpu_ops
from loop_gpu_op w
join analysed_gpu_op o on o.id = w.op
join device d on d.id = w.device
join loop_facts f on f.loop = w.loop
where w.kind = 'kernel' and w.class = 'compute'
group by w.loop, w.name, o.grid, o.block;
