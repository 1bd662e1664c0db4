-- An NVTX range inside a loop that exists to compute a value and read it back: few launches for each read; or a row of
-- such read-backs without a range, or one of many tests.
-- materialised: prices of read-backs look it up
--   loop: references loop
--   path: the range; for a row of read-backs, which one it is
--   api_call: a call made in it
create view readback_range as
with counted as (
  select
    c.loop,
    p.path,
    count(*) filter (where c.kind in ('launch', 'graph_launch')) as launches,
    count(distinct b.api_call) filter (where b.read_bytes is not null) as reads
  from call c
  join call_place p on p.api_call = c.id
  left join blocking_call b on b.api_call = c.id
  where p.path is not null
  group by c.loop, p.path
)
select
  n.loop,
  n.path,
  c.id as api_call
from counted n
join loop l on l.id = n.loop
join call_place p on p.path = n.path
join call c on c.id = p.api_call and c.loop = n.loop
where n.reads > 0 and n.launches <= setting('readback_range_calls') * n.reads and n.path is distinct from l.nvtx_path
union all
select
  loop,
  'read-backs from call ' || burst,
  api_call
from readback_burst
union all
select
  loop,
  'test of call ' || answer,
  api_call
from value_check
where answer is not null;
