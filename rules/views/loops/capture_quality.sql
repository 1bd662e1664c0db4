-- How complete the capture is: the analysed stretches of its loops, or all of it where nothing repeats. One row.
--   ops: GPU operations that a call starts: those inside graphs and unified memory's moves are not
--   orphans: of those, operations without the call that started them
--   compared: operations whose start was compared with their call's: those of the analysed iterations
--   early: of those, operations that begin before their call: the clocks disagree
create view capture_quality as
with started as (
  select
    o.api_call,
    o.process,
    o.start,
    o."end"
  from gpu_op o
  where o.graph_node is null and not starts_with(coalesce(o.copy_kind, ''), 'unified')
),
judged as (
  -- Work that was queued before the recording began has no call in it, and is over when the loop is analysed.
  select s.api_call
  from started s
  where exists (from steady_interval t where t.process = s.process and s."end" > t.start and s.start < t."end")
  union all
  select api_call
  from started
  where not exists (from steady_interval)
)
select
  o.ops,
  o.orphans,
  e.compared,
  e.early
from (
  select
    count(*) as ops,
    count(*) filter (where api_call is null) as orphans
  from judged
) o, (
  select
    count(*) as compared,
    count(*) filter (where a.start > n.start) as early
  from analysed_gpu_op n
  join analysed_api_call a on a.id = n.api_call
) e;
