-- A GPU operation that only the default stream held back, and no event.
--   op: references gpu_op
--   loop: references loop
--   api_call: the call that started it
--   blocker: the operation it waited for (references gpu_op)
--   short: the kernel's base name; null for copies and sets
--   blocker_short: the same of the operation it waited for
--   held_ns: how much of it could have run meanwhile (ns)
--   default_call: the call that gives the default stream most of the loop's work there
create view held_by_default_stream as
select
  op,
  loop,
  api_call,
  blocker,
  short,
  blocker_short,
  least(ready_ns, duration_ns) as held_ns,
  default_call
from default_stream_wait
left join (
  select
    o.loop,
    mode(c.name order by c.name) as default_call
  from loop_gpu_op o
  join stream s on s.id = o.stream and s.kind = 'null'
  join call c on c.id = o.api_call
  group by o.loop
) using (loop)
where can_share
  and after_ns <= setting('default_stream_after_ns')
  and ready_ns >= setting('default_stream_ready_ns')
  -- it is meant to wait
  and not after_event;
