-- A stretch in which a loop stood still for longer than several of its iterations: inside one iteration, or between
-- two. The same loop goes on after it, and the GPU computed nothing.
-- materialised: two rules and two views read it
--   loop: references loop
--   process: references process
--   thread: the thread that drives the loop
--   iteration_no: how many iterations of the process after warm-up came before
--   occurrence: counts the pauses of a process from 1; one right after the iteration that follows another is the same
--   start: when it began (ns)
--   end: when it ended (ns)
--   between: whether it lies between two iterations, which the loop's time does not count
--   analysed: whether the iterations at its ends are analysed
--   idle_ns: time in it in which the GPU computed nothing, less the profiler's own work (ns); inside iterations that
--    are not analysed only stretches longer than an iteration, as the host times them and may run ahead
--   kernels: kernels and graphs that began in it
--   launch_bound: whether it lies between iterations, and the GPU mostly waits in it from one launch to the next
--   iteration_ns: median analysed iteration (ns)
--   path: the innermost NVTX range in the middle of it
--   os_name: the operating system call in which the thread spent most of it; null when those were not recorded
--   os_ns: how long, all such calls together (ns)
--   copy_bytes: what was copied between host and GPU in it (B); null for nothing
--   copy_ns: how long that took (ns)
--   copy_direction: device_to_host or host_to_device: the way that most of it went
create view loop_pause as
with numbered as (
  select
    id as iteration,
    loop,
    process,
    thread,
    start,
    "end",
    row_number() over (partition by loop, process order by start, id) as iteration_no,
    -- the others are timed by the host, which may run ahead
    median("end" - start) filter (where analysed) over (partition by loop) as iteration_ns,
    analysed,
    lead(loop) over w as next_loop,
    lead(start) over w as next_start,
    lead(analysed) over w as next_analysed
  from iteration
  where in_steady_state and "end" > start
  window w as (partition by process, thread order by start)
),
long as (
  select
    iteration,
    loop,
    process,
    thread,
    iteration_no,
    iteration_ns,
    start,
    "end",
    false as between,
    analysed
  from numbered
  where "end" - start > 2 * iteration_ns
  union all
  select
    null,
    loop,
    process,
    thread,
    iteration_no,
    iteration_ns,
    "end",
    next_start,
    true,
    analysed and next_analysed
  from numbered
  where next_loop = loop and next_start - "end" > 2 * iteration_ns
),
-- stretches of time of which some are near a pause: what lies in no such stretch is left out before it is sorted
width as (
  select near_width("end" - start) as ns from long
),
near as (
  select distinct unnest(near_stretches(start, "end", ns)) as stretch from long, width
),
worked as (
  select
    process,
    start,
    "end",
    true as computes
  from gpu_op
  where process in (select process from long)
    and kind in ('kernel', 'graph')
    and "end" > start
    and start // (select ns from width) in (select stretch from near)
  union all
  select
    p.process,
    v.start,
    v."end",
    false
  from overhead v, (select distinct process from long) p
),
-- what began in a pause, and what was running when it began
within_pause as (
  select
    l.process,
    l.start as pause,
    l.iteration_ns,
    b.computes,
    true as begun,
    b.start,
    least(b."end", l."end") as "end"
  from worked b
  asof join long l on b.process = l.process and l.start <= b.start
  where b.start < l."end"
  union all
  select
    l.process,
    l.start,
    l.iteration_ns,
    b.computes,
    false,
    l.start,
    least(b."end", l."end")
  from worked b
  asof join long l on b.process = l.process and l.start > b.start
  where b."end" > l.start
),
-- the GPU computing, or the profiler; copies of a checkpoint are part of what the pause costs
busy as (
  select
    process,
    start,
    sum(ns) as ns,
    count(*) filter (computes and begun) as kernels,
    sum(gap_ns) filter (computes and gap_ns between 0 and setting('cpu_phase_ns')) as launching_ns,
    sum(gap_ns) filter (gap_ns > iteration_ns) as still_ns,
    max("end") as done
  from (
    select
      process,
      pause as start,
      computes,
      begun,
      "end",
      iteration_ns,
      greatest(0, "end" - greatest(start, done)) as ns,
      start - done as gap_ns
    from (
      select
        *,
        coalesce(
          max("end")
            over (partition by process, pause order by start, "end" rows between unbounded preceding and 1 preceding),
          pause
        ) as done
      from within_pause
    )
  )
  group by process, start
),
copied as (
  select
    l.process,
    l.start,
    sum(c.bytes) as bytes,
    sum(least(c."end", l."end") - c.start) as ns,
    arg_max(c.copy_kind, (c.bytes, c.start)) as copy_direction
  from (
    select
      process,
      start,
      "end",
      bytes,
      copy_kind
    from gpu_op
    where process in (select process from long)
      and "end" > start
      and start // (select ns from width) in (select stretch from near)
      and kind = 'memcpy'
      and copy_kind in ('host_to_device', 'device_to_host')
  ) c
  asof join long l on c.process = l.process and l.start <= c.start
  where c.start < l."end"
  group by l.process, l.start
),
called as (
  select
    l.process,
    l.start,
    w.name,
    sum(least(w."end", l."end") - w.start) as ns
  from (
    select
      thread,
      name,
      start,
      "end"
    from os_call
    where thread in (select thread from long) and start // (select ns from width) in (select stretch from near)
  ) w
  asof join long l on w.thread = l.thread and l.start <= w.start
  where w.start < l."end"
  group by l.process, l.start, w.name
)
select
  l.loop,
  l.process,
  l.thread,
  l.iteration_no,
  sum(case when l.iteration_no - l.previous_no <= 1 then 0 else 1 end)
    over (partition by l.loop, l.process order by l.start rows unbounded preceding)::bigint
    as occurrence,
  l.start,
  l."end",
  l.between,
  l.analysed,
  cast(
    case
      when l.analysed
        or l.between
          then greatest(0, l."end" - l.start - case when l.between then 0 else l.iteration_ns end - coalesce(b.ns, 0))
      when b.ns is null then l."end" - l.start
      else coalesce(b.still_ns, 0) + case when l."end" - b.done > l.iteration_ns then l."end" - b.done else 0 end
    end as bigint
  ) as idle_ns,
  coalesce(b.kernels, 0) as kernels,
  l.between and coalesce(b.launching_ns >= setting('most_share') * (l."end" - l.start - b.ns), false) as launch_bound,
  l.iteration_ns,
  a.path,
  n.text as os_name,
  cast(c.ns as bigint) as os_ns,
  cast(m.bytes as bigint) as copy_bytes,
  cast(m.ns as bigint) as copy_ns,
  m.copy_direction
from (
  select
    *,
    lag(iteration_no) over (partition by loop, process order by start) as previous_no
  from long
) l
left join busy b on b.process = l.process and b.start = l.start
left join copied m on m.process = l.process and m.start = l.start
left join (
  select
    process,
    start,
    max(ns) as ns,
    arg_max(name, (ns, name)) as name
  from called
  group by process, start
) c on c.process = l.process
  and c.start = l.start
left join name n on n.id = c.name
asof left join annotation_at a on l.thread = a.thread and a.time <= (l.start + l."end") // 2;
