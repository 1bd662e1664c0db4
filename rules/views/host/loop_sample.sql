-- Where the user's own code was, by Python samples of the thread that drives a loop.
--   loop: references loop
--   file: source file
--   line: line in it
--   function: function
--   samples: how many samples
create view loop_sample as
with sampled as (
  select
    s.loop,
    user_frame(y.frames) as frame
  from py_sample y
  asof join steady_interval s on y.thread = s.thread and s.start <= y.time
  where y.time < s."end"
)
select
  loop,
  frame.file as file,
  frame.line as line,
  frame.function as function,
  cast(count(*) as integer) as samples
from sampled
where frame is not null
group by all;
