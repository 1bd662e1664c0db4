-- A call in which the driver or a library sets itself up: in a run in which nothing repeats, one of the first of its
-- function in its process, and far longer than such calls take. Waits, copies and pinning may take long by themselves.
-- materialised: idle time and a rule look it up
--   api_call: references api_call
--   loop: references loop
--   name: the function
--   ns: how long it took (ns)
create view first_call as
with early as (
  select
    a.id,
    row_number() over (partition by a.process, a.name order by a.start, a.id) as place
  from api_call a
  join api_name k on k.id = a.name
  where a.parent is null and k.kind in ('launch', 'graph_launch', 'alloc', 'free', 'pool', 'context', 'other')
)
select
  c.id as api_call,
  c.loop,
  c.name,
  c."end" - c.start as ns
from call c
join loop l on l.id = c.loop and l.period_source = 'unknown'
join early e on e.id = c.id and e.place <= setting('first_call_place')
where c."end" - c.start >= setting('first_call_ns') and c.kind <> 'load';
