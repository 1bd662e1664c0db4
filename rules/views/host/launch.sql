-- A kernel or graph launch, with the idle time the GPU spent waiting for it.
--   api_call: references api_call
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   path: innermost NVTX range
--   name: the kernel's full name
--   short: its base name
--   start: of the kernel (ns)
--   duration_ns: the kernel's duration (ns)
--   latency_ns: from the call to the kernel's start (ns)
--   segment_ns: host time before the call (ns)
--   idle_launch_ns: idle time the launch itself explains: its host segment, its call and its latency (ns)
create view launch as
select
  c.id as api_call,
  w.op,
  c.loop,
  c.iteration,
  p.path,
  w.name,
  w.short,
  w.start,
  w.duration_ns,
  w.start - c.start as latency_ns,
  c.start - c.segment_start as segment_ns,
  coalesce(i.ns, 0) as idle_launch_ns
from call c
join loop_gpu_op w on w.api_call = c.id and w.kind in ('kernel', 'graph')
left join call_place p on p.api_call = c.id
left join (
  select
    api_call,
    cast(sum("end" - start) as bigint) as ns
  from idle_interval
  where category = 'idle_launch'
  group by api_call
) i on i.api_call = c.id;
