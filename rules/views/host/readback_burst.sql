-- A call in a row of read-backs, each of a value that a reduction has just made, as of norms that are printed one by
-- one.
-- The first value is left out: read together, they are computed and read once.
--   loop: references loop
--   burst: the call of the row that came first
--   api_call: a call made for a value of it
create view readback_burst as
with reading as (
  select
    b.loop,
    b.iteration,
    b.thread,
    b.api_call,
    c.seq,
    lag(c.seq) over (partition by b.loop, b.iteration, b.thread order by c.seq) as previous
  from blocking_call b
  join call c on c.id = b.api_call
  where b.read_bytes <= setting('readback_burst_bytes')
),
between_reads as (
  select
    r.api_call,
    count(distinct c.id) filter (where c.kind in ('launch', 'graph_launch')) as launches,
    bool_and(o.id is null or coalesce(o.copy_kind = 'device_to_host', false) or makes_a_value(n.text)) as only_values
  from reading r
  join call c on c.thread = r.thread and c.seq > r.previous and c.seq <= r.seq
  left join analysed_gpu_op o on o.api_call = c.id and o.kind <> 'memset'
  left join name n on n.id = o.name
  where c.id = r.api_call or o.id is not null or c.kind in ('launch', 'graph_launch')
  group by r.api_call
),
marked as (
  select
    r.*,
    coalesce(b.only_values and b.launches <= setting('readback_range_calls'), false) as again
  from reading r
  left join between_reads b using (api_call)
),
grouped as (
  select
    *,
    sum(if(again, 0, 1)) over (partition by loop, iteration, thread order by seq) as row_number
  from marked
),
row_of_reads as (
  select
    loop,
    thread,
    min(api_call) as burst,
    min(seq) as first,
    max(seq) as last
  from grouped
  group by loop, iteration, thread, row_number
  having count(*) >= setting('readback_burst_reads')
)
select
  w.loop,
  w.burst,
  c.id as api_call
from row_of_reads w
join call c on c.thread = w.thread and c.seq > w.first and c.seq <= w.last;
