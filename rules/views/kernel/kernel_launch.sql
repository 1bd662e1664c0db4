-- A kernel launch and when it was made: in this order `ncu --launch-skip` counts the launches of one base name and
-- process, warm-up included, and what was not selected as well.
--   op: references gpu_op; null for a launch that was not selected
--   process: references process
--   short: the kernel's base name
--   called: when the call that launched it began; the operation itself where no call was traced (ns)
--   start: when the operation began (ns)
--   local_per_thread: local memory a thread (B)
create view kernel_launch as
select
  o.id as op,
  o.process,
  coalesce(n.short, n.text) as short,
  coalesce(c.start, o.start) as called,
  o.start,
  o.local_per_thread
from gpu_op o
join name n on n.id = o.name
left join api_call c on c.id = o.api_call
where o.kind = 'kernel'
union all
select
  null,
  u.process,
  coalesce(n.short, n.text),
  u.called,
  u.called,
  null
from left_out_launch u
join name n on n.id = u.name;
