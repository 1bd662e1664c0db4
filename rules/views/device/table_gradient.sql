-- A pass over an array as large as an embedding table, because the gradient of the table is dense: PyTorch fills an
-- array of that size with zeros, adds the gradients of the rows that were looked up, and the optimizer goes over all of
-- it. Passes of the optimizer count where they are of the table's size; where none are, of the kernels that update all
-- parameters together the part that the table has of these, at least.
--   loop: references loop
--   iteration: references iteration
--   op: references gpu_op
--   api_call: the call that started it, when traced
--   duration_ns: how long it ran (ns)
--   fills: whether it fills the gradient with zeros
--   part: which part of it is the table's
create view table_gradient as
with scatter as (
  select
    w.loop,
    w.iteration,
    w.stream,
    w.start
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where o.name in (select id from name where scatters_embedding(text))
),
pass as (
  select
    op,
    loop,
    iteration,
    stream,
    api_call,
    start,
    duration_ns,
    threads,
    run,
    name in (select id from name where contains(text, 'FillFunctor')) as fills
  from elementwise_op
  where stream in (select stream from scatter)
  union all
  -- the mean of each row, say
  select
    w.op,
    w.loop,
    w.iteration,
    w.stream,
    w.api_call,
    w.start,
    w.duration_ns,
    o.grid * o.block,
    null,
    false
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where w.stream in (select stream from scatter) and o.name in (select id from name where short = 'reduce_kernel')
),
-- the last array filled before it; an array of more than 2**31 elements is filled in parts, one after another
scattered as (
  select
    s.loop,
    s.iteration,
    s.stream,
    s.start,
    f.start as filled,
    f.run,
    f.threads,
    f.duration_ns
  from scatter s
  asof join (from pass where fills) f on f.stream = s.stream and f.start <= s.start
  where f.iteration = s.iteration
  qualify row_number() over (partition by f.op order by s.start) = 1
),
filled as (
  select
    p.loop,
    p.iteration,
    p.op,
    p.api_call,
    p.duration_ns,
    s.threads
  from scattered s
  join pass p on p.stream = s.stream
    and p.iteration = s.iteration
    and p.run = s.run
    and p.threads = s.threads
    and p.fills
    and p.start <= s.start
),
-- by the thread that drives the loop, as autograd has one of its own; before the next pass forward, which looks rows
-- up
-- and multiplies matrices. Each thread works on one value or on several.
driven as (
  select
    p.op,
    p.loop,
    p.iteration,
    p.stream,
    p.api_call,
    p.start,
    p.duration_ns,
    p.threads
  from pass p
  join analysed_iteration t on t.iteration = p.iteration
  join call a on a.id = p.api_call and a.thread = t.thread and a.kind = 'launch'
  where not p.fills
),
forward as (
  select
    w.stream,
    w.start
  from loop_gpu_op w
  join analysed_iteration t on t.iteration = w.iteration
  join call a on a.id = w.api_call and a.thread = t.thread
  where w.stream in (select stream from scatter)
    and (gathers_rows(w.name) or kernel_role(w.name) in ('product', 'convolution', 'attention'))
),
updated as (
  select
    p.loop,
    p.iteration,
    p.op,
    p.api_call,
    p.duration_ns
  from driven p
  asof join scattered s on s.stream = p.stream and s.start <= p.start
  asof left join forward f on f.stream = p.stream and f.start <= p.start
  where p.duration_ns >= s.duration_ns
    and coalesce(f.start < s.start, true)
    and abs(log2(p.threads / s.threads) - round(log2(p.threads / s.threads))) < 0.001
    and abs(log2(p.threads / s.threads)) <= 3.5
),
-- each block of these kernels works on 65,536 elements at most, a thread that fills on four at least; a kernel that
-- works on fewer elements than the table has updates others
grouped as (
  select
    w.loop,
    w.iteration,
    w.op,
    w.api_call,
    w.duration_ns,
    4 * s.threads / (sum(o.grid) over (partition by w.iteration, o.name) * 65536.0) as part
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join (
    select
      loop,
      sum(distinct threads) as threads
    from filled
    group by loop
  ) s on s.loop = w.loop
  where o.kind = 'kernel'
    and o.name in (select id from name where contains(text, 'multi_tensor_apply_kernel'))
    and w.loop not in (select loop from updated)
)
select
  * exclude (threads),
  true as fills,
  1.0 as part
from filled
union all
select
  *,
  false,
  1.0
from updated
union all
select
  * exclude (part),
  false,
  part
from grouped
where part <= 1;
