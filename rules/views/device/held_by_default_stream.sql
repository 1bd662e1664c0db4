-- A GPU operation that only the default stream held back, in a loop whose streams are not ordered by events.
--   op: references gpu_op
--   loop: references loop
--   api_call: the call that started it
--   short: the kernel's base name; null for copies and sets
--   blocker_short: the same of the operation it waited for
--   held_ns: how much of it could have run meanwhile (ns)
create view held_by_default_stream as
select
  op,
  loop,
  api_call,
  short,
  blocker_short,
  least(ready_ns, duration_ns) as held_ns
from default_stream_wait
where can_share
  and after_ns <= setting('default_stream_after_ns')
  and ready_ns >= setting('default_stream_ready_ns')
  -- these are meant to wait for one another
  and loop not in (select loop from call where regexp_matches(name, 'StreamWaitEvent'));
