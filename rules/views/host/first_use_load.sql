-- A call inside a loop that loads code for a kernel not launched before. The CUDA driver loads code when it is first
-- needed, so such calls end as soon as everything has been used once.
-- materialised: two rules look it up
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   ns: how long the call took, with the host time before it (ns)
create view first_use_load as
with launched as (
  select
    *,
    count(case when kind in ('launch', 'graph_launch') then 1 end) over (partition by thread order by seq) as launches
  from call
  where loop in (select loop from call where kind = 'load' and loads_code(name))
),
loading as (
  select
    process,
    thread,
    iteration,
    launches,
    min(start) as since
  from launched
  where loads_code(name)
  group by process, thread, iteration, launches
),
bounded as (
  select
    l.*,
    least(coalesce(lead(l.since) over (partition by l.process order by l.since), i."end"), i."end") as until
  from loading l
  join iteration i on i.id = l.iteration
),
-- of the kernel that runs first: on another stream one may be launched a little earlier
first_op as (
  select
    process,
    min(start) as start,
    arg_min_null(api_call, (start, id)) as api_call
  from gpu_op
  where kind = 'kernel' and process in (select process from bounded)
  group by process, name
),
first_launch as (
  select
    o.process,
    coalesce(a.start, o.start) as time
  from first_op o
  left join api_call a on a.id = o.api_call
),
-- the next kernel that was not launched before is the one that the code was loaded for
needed as (
  select
    b.thread,
    b.iteration,
    b.launches
  from bounded b
  asof join first_launch f on b.process = f.process and b.since <= f.time
  where f.time < b.until
)
select
  c.id as api_call,
  c.loop,
  c.iteration,
  c."end" - c.segment_start as ns
from launched c
join needed n on n.thread = c.thread and n.iteration = c.iteration and n.launches = c.launches
where loads_code(c.name);
