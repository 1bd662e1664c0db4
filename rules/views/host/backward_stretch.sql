-- A stretch in which a Python thread waited for PyTorch's backward pass, whose kernels another thread launches.
-- materialised: looked up by time for each place of a finding
--   process: references process
--   thread: the thread that waited (references thread)
--   start: when a sample found it waiting (ns)
--   end: when the thread's next sample was taken (ns); null where there is none
--   file: the innermost file that is the user's own
--   line: the line in it
--   function: the function in it
create view backward_stretch as
with sampled as (
  select
    thread,
    time as start,
    lead(time) over (partition by thread order by time) as "end",
    frames
  from py_sample
),
waiting as (
  select
    thread,
    start,
    "end",
    user_frame(frames) as frame
  from sampled
  where contains(frames[1].file, '/torch/autograd/')
)
select
  t.process,
  w.thread,
  w.start,
  w."end",
  w.frame.file as file,
  w.frame.line as line,
  w.frame.function as function
from waiting w
join thread t on t.id = w.thread
where w.frame.file is not null;
