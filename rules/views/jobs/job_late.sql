-- How a rank of a job differs from the others over all iterations.
-- materialised: read by all rules of jobs
--   member: references job_rank
--   loop: references loop, of the reference rank
--   label: what the report calls the rank
--   host: its host, when known
--   iterations: iterations analysed
--   iteration_ns: their mean length (ns)
--   more_ns: how much more it does itself in an iteration than the others, typically (ns)
--   rise_ns: how much that grew from the first third of the iterations to the last (ns)
--   last_ns: how much more it does in the last third (ns)
--   compute_ns: time in which its GPU computed, mean of an iteration (ns)
--   copy_ns: time in which it only copied (ns)
--   idle_ns: time in which it had nothing to do (ns)
--   wait_ns: time in which it only waited for other ranks (ns)
--   late: whether it does so much more that the others wait for it, all the time
--   degrades: whether it became so late during the recording
--   host_late: whether nearly all ranks of its host are late
--   cause: what it does more of: compute, host or copies
create view job_late as
with each as (
  select
    *,
    ntile(3) over (partition by member order by step) as third
  from job_work
),
summed as (
  select
    member,
    any_value(loop) as loop,
    count(*) as iterations,
    any_value(iteration_ns) as iteration_ns,
    median(more_ns) as more_ns,
    median(more_ns) filter (third = 3) - median(more_ns) filter (third = 1) as rise_ns,
    median(more_ns) filter (third = 3) as last_ns,
    median(more_ns) filter (third = 1) as first_ns,
    avg(compute_ns) as compute_ns,
    avg(copy_ns) as copy_ns,
    avg(idle_ns) as idle_ns,
    avg(wait_ns) as wait_ns
  from each
  group by member
),
-- how far ranks lie apart that are not slow, by those below the middle
usual as (
  select
    lower_spread(quantile_cont(more_ns, job_base_part()), quantile_cont(more_ns, job_low_part())) as spread_ns,
    quantile_cont(more_ns, job_base_part()) as base_ns,
    quantile_cont(compute_ns, job_base_part()) as compute_ns,
    quantile_cont(copy_ns, job_base_part()) as copy_ns,
    quantile_cont(idle_ns, job_base_part()) as idle_ns,
    median(rise_ns) as rise_ns,
    spread_of_mad(mad(rise_ns)) as rise_spread_ns
  from summed
),
judged as (
  select
    s.* replace (s.more_ns - u.base_ns as more_ns),
    s.rise_ns
      - u.rise_ns >= greatest(setting('job_min_late') * s.iteration_ns, setting('job_spreads') * u.rise_spread_ns)
      and s.first_ns <= setting('job_risen') * s.last_ns
      and s.iterations >= setting('job_trend_iterations') as degrades,
    s.more_ns
      - u.base_ns >= greatest(setting('job_min_late') * s.iteration_ns, setting('job_spreads') * u.spread_ns) as late,
    s.compute_ns - u.compute_ns as more_compute_ns,
    s.copy_ns - u.copy_ns as more_copy_ns,
    s.idle_ns - u.idle_ns as more_idle_ns
  from summed s
  cross join usual u
),
of_host as (
  select
    r.host,
    count(*) as ranks,
    avg(cast(j.late as integer)) as late_part
  from judged j
  join job_rank r on r.id = j.member
  where r.host is not null
  group by r.host
)
select
  j.member,
  j.loop,
  r.label,
  r.host,
  j.iterations,
  j.iteration_ns,
  j.more_ns,
  j.rise_ns,
  j.last_ns,
  j.compute_ns,
  j.copy_ns,
  j.idle_ns,
  j.wait_ns,
  j.late and not j.degrades as late,
  j.degrades,
  coalesce(h.late_part >= setting('job_host_part') and h.ranks > 1 and h.ranks < count(*) over (), false)
    as host_late,
  case greatest(j.more_compute_ns, j.more_copy_ns, j.more_idle_ns)
    when j.more_compute_ns then 'compute'
    when j.more_idle_ns then 'host'
    else 'copies'
  end as cause
from judged j
join job_rank r on r.id = j.member
left join of_host h on h.host = r.host;
