-- Idle time of which the launching thread spends most waiting for a lock or for another thread. Threads that alternate
-- in launching hand over the work, and a compiler waits for threads of its own: neither is listed.
--   idle_interval: references idle_interval
--   loop: references loop
--   api_call: the call that it delays
--   thread: the launching thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   waited_ns: how long the thread waited in it, all its waits together (ns)
--   wait_name: what it waited in longest
create view lock_idle as
select
  p.idle_interval,
  p.loop,
  p.api_call,
  p.thread,
  p.start,
  p."end",
  cast(sum(least(p."end", w."end") - greatest(p.start, w.start)) as bigint) as waited_ns,
  arg_max(w.name, (w."end" - w.start, w.name)) as wait_name
from lock_wait w
join idle_interval p on p.thread = w.thread and p.start < w."end" and p."end" > w.start
where p.doing = 'segment'
  and p.category in ('idle_launch', 'idle_other')
  and p.api_call is not null
  and p.leaf <> 'compiling'
  and p.idle_interval not in (select idle_interval from staged_upload)
  and not exists (
    from call o
    where o.loop = p.loop
      and o.thread <> p.thread
      and o.kind in ('launch', 'graph_launch', 'copy')
      and o.start < w."end"
      and o."end" > w.start
  )
group by p.idle_interval, p.loop, p.api_call, p.thread, p.start, p."end"
having waited_ns >= setting('lock_wait_ns') and waited_ns >= setting('most_share') * (p."end" - p.start);
