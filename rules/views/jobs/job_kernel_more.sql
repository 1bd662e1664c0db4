-- The kernel that a rank of a job spends most more time in than the others do.
--   member: references job_rank
--   kernel: the kernel's short name
--   more_ns: how much more it takes in an iteration than on a typical rank (ns)
create view job_kernel_more as
with beside as (
  select
    member,
    name,
    ns - median(ns) over (partition by name) as more_ns
  from job_kernel
)
select
  member,
  arg_max(name, (more_ns, name)) as kernel,
  max(more_ns) as more_ns
from beside
where more_ns > 0
group by member;
