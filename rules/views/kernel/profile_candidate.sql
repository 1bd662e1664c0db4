-- A kernel of a loop as a candidate for Nsight Compute: all launches of one full name. A name launched in several
-- sizes stands for all of them, and the size that takes most of its time is the one to profile.
--   loop: references loop
--   name: the kernel's full name
--   short: its base name
--   library: whether it comes with a library
--   grid: blocks, in the size that takes most of its time
--   block: threads a block, in that size
--   median_ns: median duration in that size (ns)
--   sizes: in how many sizes it is launched
--   launches_per_iteration: its launches in an iteration, in all sizes
--   share: its part of the loop's time, 0 to 1
--   sm_count: multiprocessors of the device
--   profiled: whether a profile of it was given; of that size, where the profile's size is one of the timeline's
--   gpu_ops: its operations, in all sizes (references gpu_op)
--   main_ops: those of the size to profile (references gpu_op)
create view profile_candidate as
with matched as (
  select
    loop,
    flatten(list(gpu_ops order by gpu_ops)) as ops
  from kernel_match
  group by loop
),
used as (
  select
    u.*,
    coalesce(list_has_any(u.gpu_ops, m.ops), false) as profiled
  from kernel_use u
  left join matched m using (loop)
)
select
  u.loop,
  u.name,
  min(coalesce(u.short, u.name)) as short,
  is_library_kernel(u.name) as library,
  first(u.grid order by u.total_ns desc, u.grid, u.block) as grid,
  first(u.block order by u.total_ns desc, u.grid, u.block) as block,
  first(u.median_ns order by u.total_ns desc, u.grid, u.block) as median_ns,
  cast(count(*) as integer) as sizes,
  sum(u.launches) / any_value(f.iterations) as launches_per_iteration,
  least(sum(u.share), any_value(f.busy_share)) as share,
  any_value(u.sm_count) as sm_count,
  first(u.profiled order by u.total_ns desc, u.grid, u.block) as profiled,
  flatten(list(u.gpu_ops order by u.grid, u.block)) as gpu_ops,
  first(u.gpu_ops order by u.total_ns desc, u.grid, u.block) as main_ops
from used u
join loop_facts f using (loop)
group by u.loop, u.name;
