-- A stretch of iterations without a pause between them; all shares of a loop refer to the sum of its steady
-- intervals.
-- materialised: every timeline view is clipped to it
--   steady_interval: dense identifier
--   loop: references loop
--   process: references process
--   thread: the thread that drives the loop
--   start: when its first iteration began (ns)
--   end: when its last iteration ended (ns)
--   iterations: how many iterations it holds
create view steady_interval as
with marked as (
  select
    *,
    case when start = lag("end") over (partition by loop, process, thread order by start) then 0 else 1 end as begins
  from analysed_iteration
),
grouped as (
  select
    *,
    sum(begins) over (partition by loop, process, thread order by start) as stretch
  from marked
)
select
  cast(row_number() over (order by loop, process, min(start)) - 1 as integer) as steady_interval,
  loop,
  process,
  thread,
  min(start) as start,
  max("end") as "end",
  cast(count(*) as integer) as iterations
from grouped
group by loop, process, thread, stretch;
