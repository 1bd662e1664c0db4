-- An outermost CUDA call that began before the last steady_interval's end. Columns as in api_call.
-- JAX copies results by threads of its own, which sleep until the thread that runs Python asks them. Their calls count
-- as
-- calls of that thread where it makes none itself: it waits, and what comes before and after them is its own work.
-- materialised: a long capture holds far more calls than are analysed
--   id: references api_call
--   start: when it began (ns)
--   end: when it returned (ns)
--   process: references process
--   thread: references thread
--   name: references name
--   recorded_before: Python functions and operators recorded since the call before it, 0 where none are
create view analysed_api_call as
with outermost as (
  select
    id,
    start,
    "end",
    process,
    thread,
    name,
    coalesce(recorded_before, 0) as recorded_before
  from api_call
  where parent is null and start < (select max("end") from steady_interval)
),
kinds as (
  select
    o.process,
    o.thread,
    count(*) filter (k.kind in ('launch', 'graph_launch')) as launches,
    count(*) filter (k.kind = 'copy') as copies,
    o.thread in (select y.thread from py_sample y) as runs_python
  from outermost o
  join api_name k on k.id = o.name
  group by o.process, o.thread
),
asking as (
  select
    process,
    arg_max(thread, (launches, -thread)) as thread
  from kinds
  where runs_python and launches > 0
  group by process
),
asked as (
  select
    o.id,
    a.thread
  from outermost o
  join kinds k on k.process = o.process and k.thread = o.thread
  join asking a on a.process = o.process
  asof left join (
    select
      thread,
      start,
      "end"
    from outermost
  ) b on a.thread = b.thread
    and o.start >= b.start
  asof left join (
    select
      thread,
      start
    from outermost
  ) n on a.thread = n.thread
    and o.start <= n.start
  where k.launches = 0
    and k.copies > 0
    and not k.runs_python
    and coalesce(b."end" <= o.start, true)
    and coalesce(n.start >= o."end", true)
)
select
  o.id,
  o.start,
  case
    when a.id is null then o."end"
    else least(
      o."end",
      lead(o.start, 1, o."end") over (partition by coalesce(a.thread, o.thread) order by o.start, o.id)
    )
  end as "end",
  o.process,
  coalesce(a.thread, o.thread) as thread,
  o.name,
  o.recorded_before
from outermost o
left join asked a on a.id = o.id;
