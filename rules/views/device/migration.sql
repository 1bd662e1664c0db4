-- A block of unified memory that moved between host and GPU.
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   direction: unified_host_to_device, unified_device_to_host …
--   bytes: size (B)
--   added_ns: part of its duration in which no earlier one was still moving (ns)
--   pause_ns: time since the last one had ended (ns); null for the first
--   kernel: the kernel that ran when it began (references gpu_op); null outside kernels
--   kernel_ns: how long that kernel ran (ns)
--   path: innermost NVTX range in which that kernel was launched
create view migration as
with moved as (
  select
    o.id as op,
    o.copy_kind as direction,
    o.bytes
  from analysed_gpu_op o
  where starts_with(o.copy_kind, 'unified_')
),
-- a last_value over both is linear where an asof join of two long lists is not
placed as (
  select
    w.op,
    w.loop,
    w.iteration,
    m.direction,
    m.bytes,
    w.start,
    w."end",
    max(case when m.op is not null then w."end" end) over (
      d rows between unbounded preceding and 1 preceding
    ) as earlier_end,
    last_value(case when m.op is null then w.op end ignore nulls) over d as kernel,
    last_value(case when m.op is null then w."end" end ignore nulls) over d as kernel_end,
    last_value(case when m.op is null then w.api_call end ignore nulls) over d as launched,
    last_value(case when m.op is null then w.duration_ns end ignore nulls) over d as kernel_ns
  from loop_gpu_op w
  left join moved m on m.op = w.op
  where exists (from moved) and (m.op is not null or w.kind = 'kernel')
  window d as (partition by w.loop, w.device order by w.start, m.op nulls first)
)
select
  op,
  loop,
  iteration,
  direction,
  bytes,
  greatest(0, "end" - greatest(start, coalesce(earlier_end, start))) as added_ns,
  greatest(0, start - earlier_end) as pause_ns,
  case when kernel_end > start then kernel end as kernel,
  case when kernel_end > start then kernel_ns end as kernel_ns,
  case when kernel_end > start then l.path end as path
from placed
left join call_place l on l.api_call = launched
where direction is not null;
