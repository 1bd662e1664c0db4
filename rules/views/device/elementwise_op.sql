-- A kernel that a library launched to compute each element of an array by itself: one operator or ufunc, one pass over
-- memory. Kernels that a compiler has fused already (Triton, XLA) do not count.
-- materialised: read twice by the next view and by the rule on chains; planning it costs more than running it
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   device: references device
--   stream: references stream
--   api_call: the call that started it, when traced
--   start: when it began (ns)
--   duration_ns: how long it ran (ns)
--   name: references name
--   threads: threads in its grid; arrays of one size and type give the same number
--   run: how many other kernels began before it on its stream: the same for all in an unbroken row
--   own_kernel: the base name of the last of these, where it is the program's own and no library's; else null
--   follows_threads: threads in its grid
--   follows_duration_ns: how long it ran (ns)
create view elementwise_op as
with kernel_name as (
  select id
  from name
  where id in (select distinct name from analysed_gpu_op where kind = 'kernel')
    and (
      regexp_matches(
        short,
        '^((vectorized|unrolled|legacy)_)?(templated_)?elementwise_kernel(_manual_unroll|_with_index|'
        '_for_multi_outputs)?$'
      )
        or regexp_matches(short, '^cupy_\w+?__\w+$')
        or regexp_matches(text, '__transform::(unary|binary)_transform_f')
    )
),
-- a window over all operations is only for loops that have any
using_them as (
  select distinct s.stream from analysed_gpu_op s where s.kind = 'kernel' and s.name in (select id from kernel_name)
),
ordered as (
  select
    w.op,
    w.loop,
    w.iteration,
    w.device,
    w.stream,
    w.api_call,
    w.start,
    w.duration_ns,
    o.name,
    o.grid * o.block as threads,
    sum(case when o.name in (select id from kernel_name) then 0 else 1 end) over before as run,
    last_value(
      case when o.name not in (select id from kernel_name) then o.name end ignore nulls
    ) over before as follows,
    last_value(
      case when o.name not in (select id from kernel_name) then o.grid * o.block end ignore nulls
    ) over before as follows_threads,
    last_value(
      case when o.name not in (select id from kernel_name) then w.duration_ns end ignore nulls
    ) over before as follows_duration_ns
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where w.class = 'compute' and w.stream in (select stream from using_them)
  window before as (partition by w.stream order by w.start, w.op)
)
select
  d.op,
  d.loop,
  d.iteration,
  d.device,
  d.stream,
  d.api_call,
  d.start,
  d.duration_ns,
  d.name,
  d.threads,
  cast(d.run as bigint) as run,
  n.short as own_kernel,
  d.follows_threads,
  d.follows_duration_ns
from ordered d
left join name n on n.id = d.follows and not is_library_kernel(n.text) and kernel_role(n.text) is null
where d.name in (select id from kernel_name);
