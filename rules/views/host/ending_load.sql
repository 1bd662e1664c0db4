-- A call that loads or builds code inside a loop whose later half hardly does so: for a shape that occurs for the first
-- time, say. Loading for a kernel not launched before is in first_use_load.
-- materialised: two rules look it up
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   ns: how long the call took, with the host time before it (ns)
create view ending_load as
with loading as (
  select
    id,
    loop,
    iteration,
    "end" - segment_start as ns
  from call
  where kind = 'load'
    and id not in (select api_call from first_use_load)
    and id not in (select api_call from repeated_setup)
),
placed as (
  select
    loop,
    iteration,
    row_number() over (partition by loop, process order by start) as place,
    count(*) over (partition by loop, process) as iterations
  from analysed_iteration
  where loop in (select loop from loading)
),
ending as (
  select loop
  from placed
  where (loop, iteration) in (
    select
      loop,
      iteration
    from loading
  )
  group by loop
  having count(*) >= setting('load_trend_least')
    and count(*) filter (place > iterations - place) < setting('load_late_share') * count(*)
)
select
  id as api_call,
  loop,
  iteration,
  ns
from loading
where loop in (select loop from ending);
