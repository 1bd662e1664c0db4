-- Idle time of which the launching thread spends most waiting for a lock or for another thread. Threads that alternate
-- in launching hand over the work, and a compiler waits for threads of its own: neither is listed.
-- materialised: read by several rules
--   idle_interval: references idle_interval
--   loop: references loop
--   api_call: the call that it delays
--   thread: the launching thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   wait_end: when its last wait ended (ns)
--   waited_ns: how long the thread waited in it, all its waits together (ns)
--   wait_name: what it waited in longest at a time
create view lock_idle as
with launching as (
  select
    process,
    thread,
    start,
    "end"
  from call
  where kind in ('launch', 'graph_launch', 'copy')
    and (loop, process) in (
      select
        loop,
        process
      from call
      where kind in ('launch', 'graph_launch', 'copy')
      group by loop, process
      having count(distinct thread) > 1
    )
),
-- waits in which another thread launches
handed_over as (
  select distinct
    w.thread,
    w.start
  from (
    select
      l.thread,
      l.start,
      l."end",
      o.thread as other
    from lock_wait l
    join thread t on t.id = l.thread
    join (
      select distinct
        process,
        thread
      from launching
    ) o on o.process = t.process
      and o.thread <> l.thread
  ) w
  asof join launching c on c.thread = w.other and c.start < w."end"
  where c."end" > w.start
),
-- a range that a lock's wait is marked with holds the system's call for it
one_wait as (
  select
    thread,
    min(start) as start,
    max("end") as "end",
    arg_max(name, ("end" - start, name)) as name
  from (
    select
      *,
      sum(if(start > reached, 1, 0))
        over (partition by thread order by start, "end" desc rows unbounded preceding)
        as wait
    from (
      select
        *,
        max("end")
          over (partition by thread order by start, "end" desc rows between unbounded preceding and 1 preceding)
          as reached
      from lock_wait
      anti join handed_over using (thread, start)
    )
  )
  group by thread, wait
),
waiting as (
  select
    *,
    sum("end" - start) over (partition by thread order by start rows unbounded preceding)
      - ("end" - start) as before_ns
  from one_wait
),
idle as (
  select
    idle_interval,
    loop,
    api_call,
    thread,
    start,
    "end"
  from idle_interval
  where doing = 'segment'
    and category in ('idle_launch', 'idle_other')
    and api_call is not null
    and leaf <> 'compiling'
    and idle_interval not in (select idle_interval from staged_upload)
),
-- The stretch that began last before a wait does, by a window: a join by order may compare all pairs.
begun as (
  select
    name,
    wait_ns,
    time,
    last_value(idle_interval ignore nulls)
      over (partition by thread order by time, idle_interval nulls last rows unbounded preceding)
      as idle_interval
  from (
    select
      thread,
      start as time,
      idle_interval,
      null as name,
      null as wait_ns
    from idle
    union all
    select
      thread,
      start,
      null,
      name,
      "end" - start
    from waiting
  )
),
longest as (
  select
    b.idle_interval,
    arg_max(b.name, (b.wait_ns, b.name)) as name
  from begun b
  join idle i using (idle_interval)
  where b.name is not null and b.time < i."end"
  group by b.idle_interval
)
select
  i.idle_interval,
  i.loop,
  i.api_call,
  i.thread,
  i.start,
  i."end",
  least(i."end", l."end") as wait_end,
  -- all that the thread had waited at its end, less what it had at its beginning
  cast(
    l.before_ns + least(i."end", l."end") - l.start - coalesce(
      f.before_ns + least(i.start, f."end") - f.start,
      0
    ) as bigint
  ) as waited_ns,
  -- the wait in which the stretch began, where most of it is that one
  case when f."end" - i.start >= setting('most_share') * waited_ns then f.name else coalesce(n.name, l.name) end
    as wait_name
from idle i
asof join waiting l on l.thread = i.thread and l.start < i."end"
asof left join waiting f on f.thread = i.thread and f.start <= i.start
left join longest n using (idle_interval)
where waited_ns >= setting('lock_wait_ns') and waited_ns >= setting('most_share') * (i."end" - i.start);
