-- An allocation from a stream-ordered pool that took so long that the pool had to ask the driver for memory.
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   duration_ns: how long it took (ns)
create view pool_request as
select
  id as api_call,
  loop,
  iteration,
  "end" - start as duration_ns
from call
where kind = 'pool' and not contains(name, 'Free') and "end" - start >= setting('pool_release_ns');
