-- A host segment worth naming: the time between two CUDA calls of one thread, when it is long.
-- materialised: gaps look it up by call
--   api_call: the call that ended it
--   loop: references loop
--   iteration: references iteration
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
  select
    c.id,
    c.loop,
    c.iteration,
    c.thread,
    c.segment_start,
    c.start,
    (c.segment_start + c.start) // 2 as middle,
    p.kind as kind_before,
    c.kind as kind_after
  from call c
  left join call p on p.thread = c.thread and p.seq = c.seq - 1
  where c.start - c.segment_start >= setting('host_work_ns')
),
voted as (
  select
    api_call,
    count(*) as samples,
    count(*) filter (where fetches_input) as fetching
  from call_sample
  where not inside
  group by api_call
)
select
  s.id as api_call,
  s.loop,
  s.iteration,
  s.thread,
  s.segment_start as start,
  s.start as "end",
  a.path,
  cast(coalesce(v.samples, 0) as integer) as samples,
  coalesce(2 * v.fetching > v.samples, false)
    or coalesce(names_input(list_last(string_split(a.path, ' / '))), false) as fetches_input,
  s.kind_before,
  s.kind_after
from long_segment s
left join voted v on v.api_call = s.id
asof left join annotation_at a on s.thread = a.thread and a.time <= s.middle;
