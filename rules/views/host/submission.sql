-- A call, with the submission that the host was heading for: the next call of its thread that hands work to the GPU or
-- that waits for it, or the call itself.
-- materialised: every idle interval looks it up
--   api_call: references api_call
--   submission: references api_call
--   loads: whether modules were loaded, code was built or a graph was made on the way
--   delayed: whether other work than submitting delayed it: from the submission or wait before it, the host took
--    settings.delayed_times the loop's usual time and settings.host_work_ns; or a phase of its own,
--    settings.delayed_most_ns, or settings.delayed_most_stacks_ns where Python stacks were recorded
create view submission as
with marked as (
  select
    c.id,
    c.loop,
    c.thread,
    c.seq,
    c.segment_start,
    c.start,
    c.kind,
    c.kind in ('launch', 'graph_launch', 'copy', 'set') or b.id is not null as submits
  from call c
  left join host_blocking_call b on b.id = c.id
),
headed as (
  select
    *,
    coalesce(
      sum(cast(submits as integer))
        over (partition by thread order by seq rows between unbounded preceding and 1 preceding),
      0
    ) as heading
  from marked
),
summed as (
  select
    thread,
    heading,
    any_value(loop) as loop,
    arg_max(id, seq) as submission,
    arg_max(kind, seq) as kind,
    max(start) - min(segment_start) as host_ns,
    bool_or(kind = 'load') as loads
  from headed
  group by thread, heading
),
usual as (
  select
    loop,
    median(host_ns) as ns
  from summed
  where kind = 'launch'
  group by loop
)
select
  h.id as api_call,
  s.submission,
  s.loads,
  s.host_ns >= least(
    case when k.process is null then setting('delayed_most_ns') else setting('delayed_most_stacks_ns') end,
    greatest(setting('host_work_ns'), coalesce(setting('delayed_times') * u.ns, 0))
  ) as delayed
from headed h
join summed s on s.thread = h.thread and s.heading = h.heading
left join usual u on u.loop = h.loop
left join thread t on t.id = h.thread
left join stacks_process k on k.process = t.process;
