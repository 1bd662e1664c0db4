-- A profiled launch whose kernel the timeline shows as well: where it runs, and what share of the loop it takes.
-- materialised: every kernel finding is placed by it
--   profile: references kernel_profile
--   loop: references loop
--   gpu_ops: the kernel's launches in the loop
--   share: its part of the loop, 0 to 1
--   median_ns: its median duration in the timeline (ns)
--   exactly: whether grid and block agree too
create view kernel_match as
with candidate as (
  select
    f.profile,
    u.loop,
    u.gpu_ops,
    u.share,
    u.median_ns,
    u.total_ns,
    f.grid = u.grid and f.block = u.block as exactly,
    kernel_key(f.name) = kernel_key(u.name) as same_name
  from kernel_facts f
  join kernel_use u on u.short = f.short
  -- One that takes quite another time is another version or another input of it.
  where coalesce(greatest(f.duration_ns / u.median_ns, u.median_ns / f.duration_ns) <= setting('profile_like'), true)
),
ranked as (
  select
    *,
    dense_rank() over (partition by profile, loop order by same_name desc, exactly desc) as place
  from candidate
  where same_name or exactly
)
select
  profile,
  loop,
  flatten(list(gpu_ops order by gpu_ops)) as gpu_ops,
  sum(share) as share,
  arg_max(median_ns, (total_ns, median_ns)) as median_ns,
  bool_and(exactly) as exactly
from ranked
where place = 1
group by profile, loop;
