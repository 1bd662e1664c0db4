-- A wait for the whole GPU with which a framework begins to record a graph: next to nothing is submitted between the
-- two.
--   api_call: references api_call
create view graph_build_wait as
with numbered as (
  select
    c.id,
    c.seq,
    c.thread,
    k.captures,
    regexp_matches(c.name, '^(cudaDeviceSynchronize|cuCtxSynchronize)') as waits,
    count(
      case when c.kind not in ('sync', 'free', 'alloc', 'load', 'context', 'other') then 1 end
    ) over (partition by c.thread order by c.seq) as submitted
  from call c
  join api_name k on k.text = c.name
  where c.thread in (select c.thread from call c join api_name k on k.text = c.name where k.captures)
)
select distinct w.id as api_call
from numbered g
asof join (from numbered where waits) w on w.thread = g.thread and w.seq <= g.seq
where g.captures and g.submitted - w.submitted <= setting('graph_seed_launches');
