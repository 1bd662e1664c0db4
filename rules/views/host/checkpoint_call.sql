-- A line of the user's that calls PyTorch's activation checkpointing, by Python samples inside it.
--   loop: references loop
--   file: source file
--   line: line in it
--   function: function
--   samples: how many samples
create view checkpoint_call as
with sampled as (
  select
    s.loop,
    checkpoint_caller(y.frames) as frame
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
where frame.file is not null
group by all;
