-- A stretch between two iterations in which a process computes something else for longer than an iteration takes, as a
-- validation or a search of all data: no loop's time counts it.
--   loop: the loop whose iteration came before it (references loop)
--   process: references process
--   start: when that iteration ended (ns)
--   end: when the next one began, of whichever loop (ns)
--   busy_ns: how long GPUs were busy in it, the time of several at once counted for each (ns)
--   share: that, over the same of the whole recording
--   copy_ns: how much of busy_ns is copies, beside no work that began before them (ns)
--   function: the innermost function of the user's own that nearly all Python samples of the loop's thread in it have
--   file: the file that this function is in
create view work_between as
with reported as (
  select id from loop where share_of_span >= setting('min_loop_share')
),
stretch as (
  select
    i.loop,
    i.process,
    i.thread,
    max(i."end") over (partition by i.process order by i.start, i.id) as start,
    lead(i.start) over (partition by i.process order by i.start, i.id) as "end"
  from iteration i
  where i.loop in (select id from reported) and i."end" > i.start
),
-- iterations that are not analysed are timed by the host, which may run ahead
typical as (
  select
    loop,
    median("end" - start) as iteration_ns
  from iteration
  where analysed and "end" > start
  group by loop
),
long as (
  select
    s.*,
    t.iteration_ns
  from stretch s
  join typical t using (loop)
  where s."end" - s.start > t.iteration_ns
),
-- stretches of time of which some are near: what lies in no such stretch is left out before it is sorted
width as (
  select near_width("end" - start) as ns from long
),
near as (
  select distinct unnest(near_stretches(start, "end", ns)) as stretch from long, width
),
worked as (
  select
    s.*,
    o.device,
    o.kind in ('kernel', 'graph') as computes,
    o.kind = 'memcpy' as copies,
    o.start as since,
    least(o."end", s."end") as until,
    max(o."end") over earlier as reached,
    max(if(o.kind in ('kernel', 'graph'), o."end", null)) over earlier as computed_until
  from (
    select
      process,
      device,
      kind,
      start,
      "end"
    from gpu_op
    where start // (select ns from width) in (select stretch from near)
  ) o
  asof join long s on o.process = s.process and s.start <= o.start
  where o.start < s."end"
  window earlier as (
    partition by s.process, s.start, o.device
    order by o.start, o."end"
    rows between unbounded preceding and 1 preceding
  )
),
computed as (
  select
    loop,
    process,
    thread,
    start,
    "end",
    sum(greatest(0, until - greatest(since, coalesce(reached, since))))::bigint as busy_ns,
    coalesce(sum(greatest(0, until - greatest(since, coalesce(reached, since)))) filter (copies), 0)::bigint
      as copy_ns
  from worked
  group by loop, process, thread, start, "end", iteration_ns
  having sum(greatest(0, until - greatest(since, coalesce(computed_until, since)))) filter (computes) > iteration_ns
    * count(distinct device) filter (computes)
),
sampled as (
  select
    c.process,
    c.start,
    user_frames(y.frames) as frames,
    row_number() over (partition by c.process, c.start order by y.time) as sample,
    count(*) over (partition by c.process, c.start) as samples
  from py_sample y
  asof join computed c on y.thread = c.thread and c.start <= y.time
  where y.time < c."end"
),
framed as (
  select
    process,
    start,
    sample,
    samples,
    unnest(frames).function as function,
    unnest(frames).file as file,
    unnest(range(1, len(frames) + 1)) as depth
  from sampled
),
called as (
  select
    process,
    start,
    function,
    file,
    avg(depth) as depth
  from framed
  group by process, start, function, file
  having count(distinct sample) >= setting('every_share') * any_value(samples)
)
select
  c.loop,
  c.process,
  c.start,
  c."end",
  c.busy_ns,
  c.busy_ns / (select sum(busy_ns) from loop_coverage) as share,
  c.copy_ns,
  p.function,
  p.file
from computed c
left join (
  select
    process,
    start,
    arg_min(function, (depth, function, file)) as function,
    arg_min(file, (depth, function, file)) as file
  from called
  group by process, start
) p on p.process = c.process
  and p.start = c.start;
