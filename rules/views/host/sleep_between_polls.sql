-- A stretch in which the GPU had nothing to do because the launching thread had asked whether it was done, and slept
-- before it asked again.
-- materialised: three rules read it
--   loop: references loop
--   idle_interval: references idle_interval
--   api_call: the question, asked while the GPU worked (references api_call)
--   call_name: the function that asked
--   os_name: the system's call that it slept in
--   duration_ns: how long it slept (ns)
--   late_ns: how long after the GPU was done the sleep ended (ns)
create view sleep_between_polls as
with sleep as (
  select
    s.thread,
    s.start,
    s."end",
    n.text as name
  from os_call s
  join name n on n.id = s.name
  -- Python slept in select() before version 3.11
  where sleeps_in(n.text) or n.text in ('select', 'pselect')
)
select
  i.loop,
  i.idle_interval,
  c.id as api_call,
  c.name as call_name,
  s.name as os_name,
  s."end" - s.start as duration_ns,
  least(i."end", s."end") - i.start as late_ns
from idle_interval i
join call n on n.id = i.api_call
join call c on c.thread = n.thread and c.seq = n.seq - 1
asof join sleep s on s.thread = i.thread and s.start <= i.start
where i.doing = 'segment'
  and asks_if_done(c.name)
  and asks_if_done(n.name)
  and s.start >= c."end"
  and s."end" > i.start;
