-- A sleep of another thread through most of a wait of the launching thread, in which it ends: as of a thread that looks
-- for work, or for room, every so often.
--   idle_interval: the stretch that the launching thread mostly waits in (references idle_interval)
--   thread: the other thread
--   name: the system's call
--   duration_ns: how long the other thread slept (ns)
--   late_share: the part of the wait that came after the sleep, 0 to 1
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
  where sleeps_in(n.text) and s."end" - s.start >= setting('host_work_ns')
),
waiting as (
  select
    b.idle_interval,
    o.thread as other,
    b.start,
    b.wait_end
  from lock_idle b
  join thread t on t.id = b.thread
  join (
    select distinct
      process,
      thread
    from sleep
  ) o on o.process = t.process
    and o.thread <> b.thread
)
select
  w.idle_interval,
  s.thread,
  s.name,
  s."end" - s.start as duration_ns,
  (w.wait_end - s."end") / (w.wait_end - w.start) as late_share
from waiting w
asof join sleep s on s.thread = w.other and s."end" <= w.wait_end
where s."end" - greatest(s.start, w.start) >= setting('most_share') * (w.wait_end - w.start);
