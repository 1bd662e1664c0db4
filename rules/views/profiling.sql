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
--   launches_per_turn: its launches in a turn, in all sizes
--   share: its part of the loop's time, 0 to 1
--   sm_count: multiprocessors of the device
--   profiled: whether a profile of it was given; of that size, where the profile's size is one of the timeline's
--   gpu_ops: its operations, in all sizes (references gpu_op)
--   main_ops: those of the size to profile (references gpu_op)
create view profile_candidate as
with matched as (
    select loop, flatten(list(gpu_ops order by gpu_ops)) as ops from kernel_match group by loop
), used as (
    select u.*, coalesce(list_has_any(u.gpu_ops, m.ops), false) as profiled from kernel_use u left join matched m using (loop)
)
select u.loop, u.name, min(coalesce(u.short, u.name)) as short, is_library_kernel(u.name) as library,
       first(u.grid order by u.total_ns desc, u.grid, u.block) as grid, first(u.block order by u.total_ns desc, u.grid, u.block) as block,
       first(u.median_ns order by u.total_ns desc, u.grid, u.block) as median_ns, cast(count(*) as integer) as sizes,
       sum(u.launches) / any_value(f.turns) as launches_per_turn, least(sum(u.share), any_value(f.busy_share)) as share,
       any_value(u.sm_count) as sm_count, first(u.profiled order by u.total_ns desc, u.grid, u.block) as profiled,
       flatten(list(u.gpu_ops order by u.grid, u.block)) as gpu_ops, first(u.gpu_ops order by u.total_ns desc, u.grid, u.block) as main_ops
from used u join loop_facts f using (loop) group by u.loop, u.name;

-- A kernel launch and when it was made: in this order `ncu --launch-skip` counts the launches of one base name and
-- process, warm-up included, and what was not selected as well.
--   op: references gpu_op; null for a launch that was not selected
--   process: references process
--   short: the kernel's base name
--   called: when the call that launched it began; the operation itself where no call was traced (ns)
--   start: when the operation began (ns)
--   local_per_thread: local memory a thread (B)
create view kernel_launch as
select o.id as op, o.process, coalesce(n.short, n.text) as short, coalesce(c.start, o.start) as called, o.start, o.local_per_thread
from gpu_op o join name n on n.id = o.name left join api_call c on c.id = o.api_call
where o.kind = 'kernel'
union all
select null, u.process, coalesce(n.short, n.text), u.called, u.called, null from left_out_launch u join name n on n.id = u.name;
