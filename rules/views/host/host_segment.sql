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
--   torch_samples: of these, those whose innermost function is PyTorch's own
--   operators_ns: time in it in a framework's operators that make CUDA calls, without those among them that make none;
--    null where no operators are recorded (ns)
--   fetches_input: whether it fetched input: most of its samples are in a data loader, or its NVTX range says so;
--    waiting for a pool right after an array was copied back does not count
--   blocked_ns: time in it that the thread spent in calls of the operating system (ns)
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
    c.seq,
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
    count(*) filter (where in_framework) as in_framework,
    count(*) filter (where fetches_input) as fetching,
    count(*) filter (where waits_for_worker) as pooled
  from call_sample
  where not inside
  group by api_call
),
-- an array copied back by one of the two calls before: the copy, or the copy and the wait for it
returned as (
  select distinct s.id
  from long_segment s
  join call b on b.thread = s.thread and b.seq between s.seq - 2 and s.seq - 1
  join analysed_gpu_op o on o.api_call = b.id
  where o.copy_kind = 'device_to_host' and o.bytes >= setting('loop_result_bytes')
),
-- traced calls of the operating system last long enough to matter, and do not nest
blocked as (
  select
    s.id,
    sum(least(w."end", s.start) - w.start) as ns
  from (
    select
      thread,
      start,
      "end"
    from os_call
    where thread in (select thread from long_segment)
  ) w
  asof join long_segment s on w.thread = s.thread and s.segment_start <= w.start
  where w.start < s.start
  group by s.id
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
  cast(coalesce(v.in_framework, 0) as integer) as torch_samples,
  if(k.operators_before_ns > s.start - s.segment_start, s.start - s.segment_start, k.operators_before_ns)
    as operators_ns,
  coalesce(2 * (v.fetching - if(r.id is null, 0, v.pooled)) > v.samples, false)
    or coalesce(names_input(list_last(string_split(a.path, ' / '))), false) as fetches_input,
  cast(coalesce(b.ns, 0) as bigint) as blocked_ns,
  s.kind_before,
  s.kind_after
from long_segment s
join api_call k on k.id = s.id
left join voted v on v.api_call = s.id
left join blocked b on b.id = s.id
left join returned r on r.id = s.id
asof left join annotation_at a on s.thread = a.thread and a.time <= s.middle;
