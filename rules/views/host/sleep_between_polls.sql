-- A stretch in which the GPU had nothing to do because the launching thread had asked whether it was done, and slept
-- before it asked again: most of the stretch.
-- materialised: three rules read it
--   loop: references loop
--   idle_interval: references idle_interval
--   device: references device
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
),
asked as (
  select
    id,
    name,
    lag(id) over calls as before,
    lag(name) over calls as name_before,
    lag("end") over calls as end_before
  from call
  where thread in (select thread from call where asks_if_done(name)) and not regexp_matches(name, 'LastError$')
  window calls as (partition by thread order by seq)
)
select
  i.loop,
  i.idle_interval,
  i.device,
  a.before as api_call,
  a.name_before as call_name,
  s.name as os_name,
  s."end" - s.start as duration_ns,
  least(i."end", s."end") - i.start as late_ns
from idle_interval i
join gap g on g.gap = i.gap
join asked a on a.id = i.api_call
asof join sleep s on s.thread = i.thread and s.start <= g.start
where i.doing = 'segment'
  and i.category = 'idle_other'
  and asks_if_done(a.name)
  and asks_if_done(a.name_before)
  and s.start >= a.end_before
  and least(i."end", s."end") - i.start > setting('most_share') * (i."end" - i.start);
