-- A pass that adds a dense gradient of a look-up to another: PyTorch fills an array of the whole table's size with
-- zeros for each look-up in it, scatters the gradients of the rows looked up, and adds up what it has for the table.
--   loop: references loop
--   iteration: references iteration
--   op: the pass that adds (references gpu_op)
--   fill_op: the pass that filled the array (references gpu_op)
--   api_call: the call that started the pass that adds, when traced
--   duration_ns: how long both passes ran (ns)
create view lookup_gradient as
with pass as (
  select
    e.op,
    e.loop,
    e.iteration,
    e.stream,
    e.api_call,
    e.start,
    e.duration_ns,
    e.threads,
    contains(n.text, 'FillFunctor') as fills
  from elementwise_op e
  join name n on n.id = e.name
  where regexp_matches(n.text, 'FillFunctor|CUDAFunctor(OnSelf)?_add')
),
scatter as (
  select
    o.stream,
    o.start
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where o.name in (select id from name where scatters_gradient(text))
),
filled as (
  select
    a.loop,
    a.iteration,
    a.op,
    f.op as fill_op,
    a.api_call,
    a.stream,
    a.start,
    f.start as filled,
    f.iteration as filled_in,
    a.duration_ns + f.duration_ns as duration_ns
  from (from pass where not fills) a
  asof join (from pass where fills) f on f.stream = a.stream and f.threads = a.threads and f.start <= a.start
)
select
  l.loop,
  l.iteration,
  l.op,
  l.fill_op,
  l.api_call,
  l.duration_ns
from filled l
asof join scatter s on s.stream = l.stream and s.start <= l.start
where s.start >= l.filled and l.filled_in = l.iteration
qualify row_number() over (partition by l.fill_op order by l.start) = 1;
