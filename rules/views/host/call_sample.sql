-- A Python stack sample inside a steady_interval, given to the call it led to or interrupted.
-- materialised: joins samples with calls once
--   sample: references py_sample
--   api_call: the call that the thread was in, or that came next
--   inside: true when the thread was inside the call, false when it was in the host segment before it
--   before_ns: how long before the call the sample was taken; 0 inside it (ns)
--   file: the innermost file that is the user's own
--   line: the line in it
--   function: the function in it
--   in_framework: whether the innermost function is a framework's own: PyTorch's
--   fetches_input: whether the stack was inside a data loader
--   waits_for_worker: whether that is only because it waited for what it had given other threads or processes to do
--   entry_file: the file that asked the data loader for input; else as file
--   entry_line: the line in it
--   entry_function: the function in it
create view call_sample as
with sampled as (
  select
    id,
    time,
    thread,
    user_frame(frames) as frame,
    coalesce(contains(frames[1].file, '-packages/torch/'), false) as in_framework,
    in_data_loader(frames) as fetches_input,
    waits_for_result(frames) as waits_for_worker,
    loader_entry(frames) as entry
  from py_sample
)
select
  s.id as sample,
  c.id as api_call,
  s.time >= c.start as inside,
  greatest(0, c.start - s.time) as before_ns,
  s.frame.file as file,
  s.frame.line as line,
  s.frame.function as function,
  s.in_framework,
  s.fetches_input,
  s.waits_for_worker,
  coalesce(s.entry, s.frame).file as entry_file,
  coalesce(s.entry, s.frame).line as entry_line,
  coalesce(s.entry, s.frame).function as entry_function
from sampled s
asof join call c on s.thread = c.thread and s.time <= c."end"
where s.time >= c.segment_start;
