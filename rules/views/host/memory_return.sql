-- An idle stretch of the GPU in which the thread that submits the next work gives host memory back to the operating
-- system, page by page.
--   idle_interval: references idle_interval
--   loop: references loop
--   api_call: references api_call: the call that submits the next work
--   length_ns: how long the stretch is (ns)
--   blocked_ns: how long the thread returned memory in it (ns)
--   call_ns: how long the longest of these calls took (ns)
--   call_name: the call that it was in
create view memory_return as
select
  p.idle_interval,
  p.loop,
  p.api_call,
  p."end" - p.start as length_ns,
  sum(least(p."end", w."end") - greatest(p.start, w.start)) as blocked_ns,
  max(w."end" - w.start) as call_ns,
  arg_max(n.text, (w."end" - w.start, n.text)) as call_name
from os_call w
join name n on n.id = w.name
join idle_interval p on p.thread = w.thread and p.start < w."end" and p."end" > w.start
where regexp_matches(n.text, '^(munmap|mremap|madvise)$')
  and p.doing = 'segment'
  and p.category in ('idle_launch', 'idle_other')
  and p.api_call is not null
group by p.idle_interval, p.loop, p.api_call, p.start, p."end";
