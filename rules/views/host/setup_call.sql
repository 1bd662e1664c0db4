-- A call that allocates, frees or creates a context, anywhere in the capture.
-- materialised: read by several hygiene rules and suppressors
--   id: references api_call
--   process: references process
--   name: the function
--   kind: see the macro api_kind
--   start: when it began (ns)
--   duration_ns: how long it took (ns)
--   n: 1 for the first such call of its process; null where the process's beginning was not selected
--   phase: cold_start, steady_state or teardown of its process
--   before_work: whether it returned before its process had any GPU work, or asked for any: only such a call can have
--    created the context; a later one that takes long waited for the GPU
create view setup_call as
with working as (
  select
    process,
    min(start) as start
  from (
    select
      process,
      min(start) as start
    from gpu_op
    group by process
    union all
    select
      a.process,
      min(a.start)
    from api_call a
    where a.name in (select id from api_name where kind in ('launch', 'graph_launch', 'copy', 'set', 'sync'))
    group by a.process
  )
  group by process
)
select
  a.id,
  a.process,
  k.text as name,
  k.kind,
  a.start,
  a."end" - a.start as duration_ns,
  case
    when a.process not in (select process from part where begun)
      then row_number()
      over (partition by a.process order by a.start, a.id)
  end as n,
  w.kind as phase,
  coalesce(f.start >= a."end", true) as before_work
from (
  select *
  from api_call
  where parent is null and name in (select id from api_name where kind in ('free', 'alloc', 'host_alloc', 'context'))
) a
join api_name k on k.id = a.name
left join working f on f.process = a.process
asof left join (select * from "window" where "end" > start) w on a.process = w.process and w.start <= a.start;
