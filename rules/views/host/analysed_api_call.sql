-- An outermost CUDA call from the first one on that began in a steady_interval or started an analysed operation, to the
-- last steady_interval's end. Columns as in api_call.
-- JAX copies results by threads of its own, which sleep until the thread that runs Python asks them. Their calls count
-- as calls of that thread where it makes none itself: it waits, and what comes before and after them is its own work.
-- materialised: a long capture holds far more calls than are analysed
--   id: references api_call
--   start: when it began (ns)
--   end: when it returned (ns)
--   process: references process
--   thread: references thread
--   name: references name
--   recorded_before: Python functions and operators recorded since the call before it, 0 where none are
create view analysed_api_call as
with bound as (
  select
    least(min(start), (select min(a.start) from api_call a where a.id in (select api_call from analysed_gpu_op)))
      as first,
    max("end") as last
  from steady_interval
),
outermost as (
  select
    id,
    start,
    "end",
    process,
    thread,
    name,
    coalesce(recorded_before, 0) as recorded_before
  from api_call
  where parent is null and start >= (select first from bound) and start < (select last from bound)
),
calling as (
  select
    process,
    thread,
    count(*) as calls,
    thread in (select distinct y.thread from py_sample y) as runs_python
  from api_call
  group by process, thread
),
asking as (
  select
    process,
    arg_max(thread, (calls, -thread)) as thread
  from calling
  where runs_python
  group by process
),
launching as (
  select distinct a.thread
  from api_call a
  join api_name k on k.id = a.name
  where a.process in (select process from asking) and k.kind in ('launch', 'graph_launch')
),
helping as (
  select
    o.thread,
    any_value(a.thread) as asked_by
  from outermost o
  join asking a on a.process = o.process
  join api_name k on k.id = o.name
  where o.thread in (select c.thread from calling c where not c.runs_python)
    and o.thread not in (select l.thread from launching l)
    and k.kind = 'copy'
  group by o.thread
),
together as (
  select
    o.*,
    h.asked_by,
    max(if(h.asked_by is null, o."end", null)) over before as returned_before,
    min(if(h.asked_by is null, o.start, null)) over after as called_after
  from outermost o
  left join helping h on h.thread = o.thread
  where h.asked_by is not null or o.thread in (select asked_by from helping)
  window before as (partition by coalesce(h.asked_by, o.thread) order by o.start), after as (
    partition by coalesce(h.asked_by, o.thread)
    order by o.start
    range between current row and unbounded following
  )
),
asked as (
  select *
  from together
  where asked_by is not null and coalesce(returned_before <= start, true) and coalesce(called_after >= "end", true)
)
select
  o.id,
  o.start,
  o."end",
  o.process,
  o.thread,
  o.name,
  o.recorded_before
from outermost o
where o.id not in (select id from asked)
union all
select
  id,
  start,
  least("end", lead(start, 1, "end") over (partition by asked_by order by start, id)),
  process,
  asked_by,
  name,
  recorded_before
from asked;
