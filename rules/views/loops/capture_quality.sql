-- How complete the capture is. One row.
--   ops: GPU operations that a call starts: those inside graphs and unified memory's moves are not
--   orphans: of those, operations without the call that started them
--   compared: operations whose start was compared with their call's: those of the analysed iterations
--   early: of those, operations that begin before their call: the clocks disagree
create view capture_quality as
select
  o.ops,
  o.orphans,
  e.compared,
  e.early
from (
  select
    count(*) as ops,
    count(*) filter (where api_call is null) as orphans
  from gpu_op
  where graph_node is null and not starts_with(coalesce(copy_kind, ''), 'unified')
) o, (
  select
    count(*) as compared,
    count(*) filter (where a.start > n.start) as early
  from analysed_gpu_op n
  join analysed_api_call a on a.id = n.api_call
) e;
