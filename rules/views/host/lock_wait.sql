-- A stretch in which a thread waited for a lock, for another thread or for Python's interpreter lock.
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   name: what it waited in
create view lock_wait as
select
  w.thread,
  w.start,
  w."end",
  n.text as name
from os_call w
join name n on n.id = w.name
where w.thread in (select distinct thread from call)
  and w."end" > (select min(start) from steady_interval)
  and regexp_matches(
    n.text,
    '^(pthread_(mutex_(lock|timedlock|clocklock)|cond_(wait|timedwait|clockwait)|rwlock_\w*lock|'
    'join)|sem_(wait|timedwait|clockwait)|futex)$'
  )
union all
select
  r.thread,
  r.start,
  r."end",
  n.text
from nvtx_range r
join name n on n.id = r.name
where r.thread in (select distinct thread from call) and waits_for_interpreter(n.text);
