-- A sleep of another thread through most of a wait of the launching thread, in which it ends: as of a thread that looks
-- for work, or for room, every so often.
--   idle_interval: the wait (references idle_interval)
--   name: the system's call
--   duration_ns: how long the other thread slept (ns)
create view sleep_beside_wait as
with sleep as (
  select
    s.thread,
    t.process,
    s.start,
    s."end",
    n.text as name
  from os_call s
  join thread t on t.id = s.thread
  join name n on n.id = s.name
  where regexp_matches(n.text, '^(clock_nanosleep|nanosleep|usleep|sleep)$')
),
waiting as (
  select
    b.idle_interval,
    b.thread,
    t.process,
    b.start,
    b."end"
  from lock_idle b
  join thread t on t.id = b.thread
)
select
  w.idle_interval,
  s.name,
  s."end" - s.start as duration_ns
from waiting w
asof join sleep s on s.process = w.process and s."end" <= w."end"
where s.thread <> w.thread and s."end" - greatest(s.start, w.start) >= setting('most_share') * (w."end" - w.start);
