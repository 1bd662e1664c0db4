-- A matrix product in an unbroken row of kernels with a factorization or a triangular solve: part of that, in the
-- library that computes it or in PyTorch's derivative of it. What allows TF32 for a program's own products does not
-- reach it.
-- materialised: a window over all kernels of such streams
--   op: references gpu_op
--   loop: references loop
create view solver_product as
with kernel_name as (
  select
    id,
    solves_matrices(text) as solves,
    kernel_role(text) = 'product' as product,
    takes_triangle(text) as triangle
  from name
  where id in (select distinct name from analysed_gpu_op where kind = 'kernel')
),
-- a window over all kernels is only for streams that have any
solving as (
  select distinct stream
  from analysed_gpu_op
  where kind = 'kernel' and name in (select id from kernel_name where solves)
),
ordered as (
  select
    w.op,
    w.loop,
    w.stream,
    w.iteration,
    n.solves or n.triangle as solves,
    coalesce(n.product, false) as product,
    -- what is neither ends a row
    sum(
      if(n.solves or n.triangle or coalesce(n.product, false), 0, 1)
    ) over (partition by w.stream, w.iteration order by w.start, w.op) as run
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join kernel_name n on n.id = o.name
  where w.class = 'compute' and w.stream in (select stream from solving)
)
select
  op,
  loop
from ordered
qualify product and bool_or(solves) over (partition by stream, iteration, run);
