-- How many warps one launch of a kernel keeps on each multiprocessor, beside those that fit there at once.
--   loop: references loop
--   name: the kernel's full name
--   short: its base name
--   grid: number of blocks
--   block: threads a block
--   share: its part of the loop's time, in this launch configuration
--   launches: how often it ran
--   total_ns: summed duration (ns)
--   median_ns: median duration (ns)
--   sm_count: multiprocessors of the device
--   gpu_ops: its operations (references gpu_op)
--   library: whether it comes with a library
--   warps: warps of one launch for each multiprocessor, rounded up
--   fitting_warps: warps that fit on a multiprocessor by its registers, shared memory and places for blocks; null where
--     the recording does not tell
create view kernel_filling as
with used as (
  select
    *,
    gpu_ops[1] as op,
    ceil(nullif(block, 0) / 32) as block_warps
  from kernel_use
)
select
  u.loop,
  u.name,
  u.short,
  u.grid,
  u.block,
  u.share,
  u.launches,
  u.total_ns,
  u.median_ns,
  u.sm_count,
  u.gpu_ops,
  is_library_kernel(u.name) as library,
  ceil(u.grid * u.block_warps / u.sm_count) as warps,
  fitting_blocks(
    u.block_warps,
    o.registers,
    coalesce(o.static_shared, 0) + coalesce(o.dynamic_shared, 0),
    d.max_warps_per_sm,
    d.max_blocks_per_sm,
    d.registers_per_sm,
    d.shared_bytes_per_sm
  ) * u.block_warps as fitting_warps
from used u
join gpu_op o on o.id = u.op
join device d on d.id = o.device;
