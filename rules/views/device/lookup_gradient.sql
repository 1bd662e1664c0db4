-- A pass that adds the gradient of a part of an array to those of other parts, as large as the whole array: PyTorch
-- fills an array of that size with zeros for each part taken, rows looked up by index or a slice, writes the part's
-- gradient into it, and adds up what it has for the array. Of slices only those that follow one another in a backward
-- pass, which autograd runs on a thread of its own; a slice of more than about half of the array is not seen.
--   loop: references loop
--   iteration: references iteration
--   op: the pass that adds (references gpu_op)
--   fill_op: the pass that filled the array (references gpu_op)
--   api_call: the call that started the pass that adds, when traced
--   duration_ns: how long both passes ran (ns)
--   is_slice: whether the part is a slice, copied into the array, and no rows looked up by index
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
    e.run,
    e.name in (select id from name where contains(text, 'FillFunctor')) as fills,
    e.name in (select id from name where contains(text, 'direct_copy')) as copies,
    e.name in (select id from name where regexp_matches(text, 'CUDAFunctor(OnSelf)?_add')) as adds
  from elementwise_op e
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
  from (from pass where adds) a
  asof join (from pass where fills) f on f.stream = a.stream and f.threads = a.threads and f.start <= a.start
),
looked_up as (
  select
    l.loop,
    l.iteration,
    l.op,
    l.fill_op,
    l.api_call,
    l.duration_ns,
    false as is_slice
  from filled l
  asof join scatter s on s.stream = l.stream and s.start <= l.start
  where s.start >= l.filled and l.filled_in = l.iteration
  qualify row_number() over (partition by l.fill_op order by l.start) = 1
),
-- a slice of the first dimension is copied as a block of memory
moved as (
  select
    w.stream,
    w.start
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where w.kind = 'memcpy' and o.copy_kind = 'device_to_device'
),
-- nothing else lies between: gradients that are set to zero before a step are filled long before the sum
neighbours as (
  select
    *,
    lag(struct_pack(op, start, fills, copies, threads, run, iteration, duration_ns)) over (before) as last,
    lag(struct_pack(op, start, fills, copies, threads, run, iteration, duration_ns), 2) over (before) as one_before
  from pass
  where stream in (select stream from pass group by stream having bool_or(fills) and bool_or(adds))
  window before as (partition by stream order by start, op)
),
paired as (
  select
    *,
    case when last.copies and last.threads < threads then one_before else last end as fill
  from neighbours
),
summed as (
  select n.op
  from (from paired where adds) n
  asof left join moved m on m.stream = n.stream and m.start <= n.start
  where n.fill.fills
    and n.fill.threads = n.threads
    and n.fill.run = n.run
    and n.fill.iteration = n.iteration
    and (n.last.copies or m.start >= n.fill.start)
),
sliced as (
  select
    *,
    op in (select op from summed) as is_sum
  from paired
),
-- between the slices of one array no other pass goes over as much, as between those that each layer takes of its own
chained as (
  select
    *,
    lag(is_sum, 2) over (partition by stream, iteration, threads order by start, op) as follows_sum
  from sliced
)
select
  c.loop,
  c.iteration,
  c.op,
  c.fill.op as fill_op,
  c.api_call,
  c.duration_ns + c.fill.duration_ns as duration_ns,
  true as is_slice
from chained c
join analysed_api_call a on a.id = c.api_call
join analysed_iteration t on t.iteration = c.iteration
where c.is_sum and c.follows_sum and a.thread <> t.thread
union all
from looked_up;
