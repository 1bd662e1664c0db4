-- A stretch in which Triton's autotuner measures the configurations of a kernel while a loop runs, after its warm-up.
-- What lies less than an iteration apart is one stretch.
--   loop: references loop
--   process: references process
--   start: when it began (ns)
--   end: when it ended (ns)
--   tuning_ns: how long the autotuner measured in it (ns)
--   inside_ns: how long of that in analysed iterations (ns)
--   span_ns: from the process's first iteration after warm-up to its last (ns)
--   function: the innermost function of the user's own that called the kernel
--   file: the file that this function is in
--   line: the line in it
create view tuning as
with extent as (
  select
    i.loop,
    i.process,
    min(i.start) as start,
    max(i."end") as "end",
    median(i."end" - i.start) filter (i.analysed) as iteration_ns
  from iteration i
  join loop l on l.id = i.loop
  where i.in_steady_state and i."end" > i.start and l.share_of_span >= setting('min_loop_share')
  group by i.loop, i.process
),
tuned as (
  select
    e.loop,
    e.process,
    e.iteration_ns,
    e."end" - e.start as span_ns,
    s.start,
    s."end",
    s.function,
    s.place
  from tuning_stretches() s
  join thread t on t.id = s.thread
  join extent e on e.process = t.process and e.start <= s.start and s."end" <= e."end"
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
    sum(least(n."end", a."end") - greatest(n.since, a.start)) as ns
  from numbered n
  join analysed_iteration a on a.loop = n.loop and a.process = n.process and a.start < n."end" and n.since < a."end"
  where n.since < n."end"
  group by n.loop, n.process, n.stretch
)
select
  n.loop,
  n.process,
  min(n.start) as start,
  max(n."end") as "end",
  sum(greatest(0, n."end" - n.since))::bigint as tuning_ns,
  coalesce(any_value(i.ns), 0)::bigint as inside_ns,
  any_value(n.span_ns) as span_ns,
  arg_max(n.function, (n."end" - n.start, n.start)) as function,
  arg_max(n.place, (n."end" - n.start, n.start)).file as file,
  arg_max(n.place, (n."end" - n.start, n.start)).line as line
from numbered n
left join inside i using (loop, process, stretch)
group by n.loop, n.process, n.stretch;
