-- A wait for the whole GPU with which a framework begins to record a graph: next to nothing is submitted between the
-- two.
--   api_call: references api_call
create view graph_build_wait as
with numbered as (
  select
    c.id,
    c.loop,
    c.iteration,
    c.thread,
    c.seq,
    regexp_matches(c.name, '^(cudaDeviceSynchronize|cuCtxSynchronize)') as waits,
    k.captures,
    count(
      case when c.kind not in ('sync', 'free', 'alloc', 'load', 'context', 'other') then 1 end
    ) over (partition by c.thread order by c.seq) as submitted
  from call c
  join api_name k on k.text = c.name
  where c.thread in (select c.thread from call c join api_name k on k.text = c.name where k.captures)
),
recorded as (
  select
    id,
    waits,
    first_value(case when captures then submitted end ignore nulls)
      over (partition by loop, iteration, thread order by seq rows between current row and unbounded following)
      - submitted as submitted_before
  from numbered
)
select id as api_call
from recorded
where waits and submitted_before <= setting('graph_seed_launches');
