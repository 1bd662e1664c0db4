-- A Python stack sample inside a span, given to the call it led to or interrupted.
-- materialised: joins samples with calls once
--   sample: references py_sample
--   api_call: the call that the thread was in, or that came next
--   inside: true when the thread was inside the call, false when it was in the host segment before it
--   file: the innermost file that is the user's own
--   line: the line in it
--   function: the function in it
--   fetches_input: whether the stack was inside a data loader
--   entry_file: the file that asked the data loader for input; else as file
--   entry_line: the line in it
--   entry_function: the function in it
create view call_sample as
with sampled as (
    select id, time, thread, user_frame(frames) as frame, in_data_loader(frames) as fetches_input, loader_entry(frames) as entry
    from py_sample
)
select s.id as sample, c.id as api_call, s.time >= c.start as inside,
       s.frame.file as file, s.frame.line as line, s.frame.function as function, s.fetches_input,
       coalesce(s.entry, s.frame).file as entry_file, coalesce(s.entry, s.frame).line as entry_line,
       coalesce(s.entry, s.frame).function as entry_function
from sampled s asof join call c on s.thread = c.thread and s.time <= c."end"
where s.time >= c.segment_start;

-- A host segment worth naming: the time between two CUDA calls of one thread, when it is long.
-- materialised: gaps look it up by call
--   api_call: the call that ended it
--   loop: references loop
--   turn: references iteration
--   thread: references thread
--   start: when the previous call returned (ns)
--   end: when the call began (ns)
--   path: the innermost NVTX range in the middle of it
--   samples: Python samples in it
--   fetches_input: whether it fetched input: most of its samples are in a data loader, or its NVTX range says so
--   kind_before: the kind of the call before it
--   kind_after: the kind of the call that ended it
create view host_segment as
with long_segment as (
    select c.id, c.loop, c.turn, c.thread, c.segment_start, c.start, (c.segment_start + c.start) // 2 as middle,
           p.kind as kind_before, c.kind as kind_after
    from call c left join call p on p.thread = c.thread and p.seq = c.seq - 1
    where c.start - c.segment_start >= setting('host_work_ns')
), voted as (
    select api_call, count(*) as samples, count(*) filter (where fetches_input) as fetching
    from call_sample where not inside group by api_call
)
select s.id as api_call, s.loop, s.turn, s.thread, s.segment_start as start, s.start as "end", a.path,
       cast(coalesce(v.samples, 0) as integer) as samples,
       coalesce(2 * v.fetching > v.samples, false) or coalesce(names_input(list_last(string_split(a.path, ' / '))), false) as fetches_input,
       s.kind_before, s.kind_after
from long_segment s
left join voted v on v.api_call = s.id
asof left join annotation_at a on s.thread = a.thread and a.time <= s.middle;

-- Where the user's own code was, by Python samples of the thread that drives a loop.
--   loop: references loop
--   file: source file
--   line: line in it
--   function: function
--   samples: how many samples
create view loop_sample as
with sampled as (
    select s.loop, user_frame(y.frames) as frame
    from py_sample y asof join span s on y.thread = s.thread and s.start <= y.time where y.time < s."end"
)
select loop, frame.file as file, frame.line as line, frame.function as function, cast(count(*) as integer) as samples
from sampled where frame is not null group by all;
