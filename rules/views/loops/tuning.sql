-- A stretch in which Triton's autotuner measures the configurations of a kernel while a loop runs, after its warm-up:
-- in or after an iteration of it, and before its last one ends. What lies less than an iteration apart is one stretch.
--   loop: references loop
--   process: references process
--   start: when it began (ns)
--   end: when it ended (ns)
--   tuning_ns: how long the autotuner measured in it (ns)
--   inside_ns: how long of that in iterations (ns)
--   span_ns: from the process's first iteration after warm-up to its last (ns)
--   function: the innermost function of the user's own that called the kernel
--   file: the file of the line that called it
--   line: that line
create view tuning as
with ran as (
  select
    i.loop,
    i.process,
    i.start,
    i."end"
  from iteration i
  join loop l on l.id = i.loop
  where i.in_steady_state and i."end" > i.start and l.share_of_span >= setting('min_loop_share')
),
extent as (
  select
    loop,
    process,
    min(start) as start,
    max("end") as "end",
    max("end") - min(start) as span_ns,
    median("end" - start) as iteration_ns
  from ran
  group by loop, process
),
tuned as (
  select
    e.loop,
    e.process,
    e.iteration_ns,
    e.span_ns,
    s.start,
    s."end",
    s.place
  from (
    select
      s.*,
      t.process
    from tuning_stretches() s
    join thread t on t.id = s.thread
  ) s
  join extent e on e.process = s.process and e.start <= s.start and s."end" <= e."end"
  -- of several loops that go on after it the one whose iteration began last, or the shorter one
  qualify row_number() over (
    partition by s.thread, s.start
    order by (
      select max(r.start) from ran r where r.loop = e.loop and r.process = e.process and r.start <= s.start
    ) desc, e.iteration_ns, e.loop
  ) = 1
),
-- two threads may tune at once
reaching as (
  select
    *,
    max("end")
      over (partition by loop, process order by start, "end" rows between unbounded preceding and 1 preceding)
      as reached
  from tuned
),
numbered as (
  select
    *,
    greatest(start, coalesce(reached, start)) as since,
    count_if(coalesce(start - reached >= iteration_ns, true))
      over (partition by loop, process order by start, "end")
      as stretch
  from reaching
),
inside as (
  select
    n.loop,
    n.process,
    n.stretch,
    sum(least(n."end", r."end") - greatest(n.since, r.start)) as ns
  from numbered n
  join ran r on r.loop = n.loop and r.process = n.process and r.start < n."end" and n.since < r."end"
  where n.since < n."end"
  group by n.loop, n.process, n.stretch
),
joined as (
  select
    loop,
    process,
    stretch,
    min(start) as start,
    max("end") as "end",
    sum(greatest(0, "end" - since))::bigint as tuning_ns,
    any_value(span_ns) as span_ns,
    arg_max(place, ("end" - start, start)) as place
  from numbered
  group by loop, process, stretch
)
select
  j.loop,
  j.process,
  j.start,
  j."end",
  j.tuning_ns,
  coalesce(i.ns, 0)::bigint as inside_ns,
  j.span_ns,
  j.place.function as function,
  j.place.file as file,
  j.place.line as line
from joined j
left join inside i using (loop, process, stretch);
