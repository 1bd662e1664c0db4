-- A GPU operation started inside a steady_interval.
-- materialised: read by every view of GPU work
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   device: references device
--   stream: references stream
--   kind: kernel, memcpy, memset or graph
--   class: compute, communication or copy
--   name: the kernel's full name
--   short: its base name
--   start: when it began (ns)
--   end: when it ended (ns)
--   duration_ns: how long it ran (ns)
--   api_call: the call that started it, when traced
create view loop_gpu_op as
select
  o.id as op,
  s.loop,
  t.iteration,
  o.device,
  o.stream,
  o.kind,
  op_class(o.kind, n.short) as class,
  n.text as name,
  n.short,
  o.start,
  o."end",
  o."end" - o.start as duration_ns,
  o.api_call
from analysed_gpu_op o
asof join steady_interval s on o.process = s.process and s.start <= o.start
asof left join analysed_iteration t on o.process = t.process and t.start <= o.start
left join name n on n.id = o.name
where o.start < s."end" and o."end" > o.start;
