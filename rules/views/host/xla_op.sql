-- A kernel launched by a program that XLA had compiled, inside a loop.
-- materialised: its rule reads it three times; planning it costs more than running it
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   api_call: the call that started it
--   module: the compiled program's name
--   execution: references nvtx_range: the run of the program
--   fusible: whether XLA wrote the kernel itself; library kernels such as matrix products cannot be fused
--   duration_ns: how long it ran (ns)
create view xla_op as
with module as (
  select
    id,
    regexp_extract(text, 'hlo_module=([^,#]+)', 1) as module
  from name
  where starts_with(text, 'XlaModule:#') or starts_with(text, 'TSL:XlaModule:#')
),
execution as (
  select
    r.id,
    r.thread,
    r.start,
    r."end",
    m.module
  from nvtx_range r
  join module m on m.id = r.name
)
select
  w.op,
  w.loop,
  w.iteration,
  w.api_call,
  e.module,
  e.id as execution,
  regexp_matches(w.short, '^(wrapped|loop|input|fusion|transpose|concatenate)_|_fusion(_\d+)?$') as fusible,
  w.duration_ns
from (
  select
    id,
    thread,
    start
  from call
  where kind in ('launch', 'graph_launch') and exists (from module)
) c
asof join execution e on c.thread = e.thread and e.start <= c.start
join loop_gpu_op w on w.api_call = c.id
where c.start < e."end" and w.kind in ('kernel', 'graph');
