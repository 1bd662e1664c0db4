-- A Python sample of the thread that drives a loop, in a pause of the loop.
-- materialised: two rules and a view read it
--   loop: references loop
--   process: references process
--   start: when the pause began (ns)
--   file: the innermost file that is the user's own
--   line: the line in it
--   function: the innermost function of the user's own that has a name
--   compiles: whether the stack was inside a compiler
--   fetches_input: whether it was inside a data loader, or waited for an item that another thread makes
create view pause_sample as
select
  p.loop,
  p.process,
  p.start,
  user_frame(y.frames).file as file,
  user_frame(y.frames).line as line,
  user_function(y.frames) as function,
  len(list_filter(y.frames, lambda f: is_compiler(f.file))) > 0 as compiles,
  in_data_loader(y.frames) as fetches_input
from py_sample y
asof join loop_pause p on y.thread = p.thread and p.start <= y.time
where y.time < p."end" and user_frame(y.frames).file is not null;
