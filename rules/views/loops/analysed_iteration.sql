-- An iteration of a loop that is analysed: after warm-up, and within the last `max_ops` operations of a long loop.
--   iteration: references iteration
--   loop: references loop
--   process: references process
--   thread: the thread that drives the loop
--   start: when it began (ns)
--   end: when the next iteration began, or the GPU had drained (ns)
create view analysed_iteration as
select
  id as iteration,
  loop,
  process,
  thread,
  start,
  "end"
from iteration
where in_steady_state and analysed and "end" > start;
