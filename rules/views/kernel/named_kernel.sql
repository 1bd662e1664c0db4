-- How much a loop used a kernel, as kernel_use, with what its name tells.
-- materialised: the precision rules read it
--   loop: references loop
--   name: the kernel's full name
--   kernel: a name to print: the inner one where the outer one says nothing
--   role: what it does, see kernel_role
--   format: what its numbers are, see number_format
--   alignment: numbers that it fetches at once; null where the name does not say
--   batch_grid: of a batch of matrices, or of what else has a third axis, the blocks for each; else null
--   nvtx_path: the range that most of its launches lie in
--   launches: how often it ran
--   total_ns: summed duration (ns)
--   median_ns: median duration (ns)
--   share: its part of the loop's time
--   cc_major: the device's compute capability, major
--   gpu_ops: its operations (references gpu_op)
create view named_kernel as
with known as (
  select
    *,
    kernel_role(name) as role
  from kernel_use
),
placed as (
  select
    k.loop,
    k.name,
    k.grid,
    k.block,
    mode(p.path order by p.path) as nvtx_path
  from (
    select
      loop,
      name,
      grid,
      block,
      unnest(gpu_ops) as op
    from known
    where role is not null
  ) k
  join analysed_gpu_op o on o.id = k.op
  join call_place p on p.api_call = o.api_call
  group by all
)
select
  k.loop,
  k.name,
  coalesce(nullif(regexp_extract(k.name, 'cutlass_(\d+_)?(tensorop|simt|wmma)\w*'), ''), k.short) as kernel,
  k.role,
  number_format(k.name) as format,
  stated_alignment(k.name) as alignment,
  if(o.grid_z > 1, o.grid_x * o.grid_y, null) as batch_grid,
  p.nvtx_path,
  k.launches,
  k.total_ns,
  k.median_ns,
  k.share,
  k.cc_major,
  k.gpu_ops
from known k
join gpu_op o on o.id = k.gpu_ops[1]
left join placed p on p.loop = k.loop
  and p.name = k.name
  and p.grid is not distinct from k.grid
  and p.block is not distinct from k.block;
