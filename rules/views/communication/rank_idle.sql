-- Where a rank's GPU had nothing to do: by the NVTX range of the call that its host was heading for.
--   loop: references loop
--   process: references process
--   path: innermost NVTX range
--   api_calls: those calls
--   idle_intervals: the parts of that time
--   idle_ns: idle time (ns)
create view rank_idle as
select
  p.loop,
  g.process,
  coalesce(h.path, c.path) as path,
  list(distinct p.api_call order by p.api_call) filter (p.api_call is not null) as api_calls,
  list(p.idle_interval order by p.idle_interval) as idle_intervals,
  sum(p."end" - p.start) as idle_ns
from (select * from gap where process in (select process from rank_process)) g
join idle_interval p on p.gap = g.gap
left join host_segment h on h.api_call = p.api_call and p.doing = 'segment'
left join call_place c on c.api_call = p.api_call
group by p.loop, g.process, coalesce(h.path, c.path);
