-- Idle time of which the launching thread spends most waiting for a lock or for another thread. Threads that alternate
-- in launching hand over the work, and a compiler waits for threads of its own: neither is listed.
--   idle_interval: references idle_interval
--   loop: references loop
--   api_call: the call that it delays
--   thread: the launching thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   waited_ns: how long the thread waited in it, all its waits together (ns)
--   wait_name: what it waited in last
create view lock_idle as
with launching as (
  select
    c.thread,
    t.process,
    c.start,
    c."end"
  from call c
  join thread t on t.id = c.thread
  where c.kind in ('launch', 'graph_launch', 'copy')
    and c.loop in (
      select loop
      from call
      where kind in ('launch', 'graph_launch', 'copy')
      group by loop
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
waiting as (
  select
    thread,
    start,
    "end",
    name,
    coalesce(
      sum("end" - start)
        over (partition by thread order by start, "end" rows between unbounded preceding and 1 preceding),
      0
    ) as before_ns
  from lock_wait
  anti join handed_over using (thread, start)
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
)
select
  i.idle_interval,
  i.loop,
  i.api_call,
  i.thread,
  i.start,
  i."end",
  -- all that the thread had waited at its end, less what it had at its beginning
  cast(
    l.before_ns + least(i."end", l."end") - l.start - coalesce(
      f.before_ns + least(i.start, f."end") - f.start,
      0
    ) as bigint
  ) as waited_ns,
  l.name as wait_name
from idle i
asof join waiting l on l.thread = i.thread and l.start < i."end"
asof left join waiting f on f.thread = i.thread and f.start <= i.start
where waited_ns >= setting('lock_wait_ns') and waited_ns >= setting('most_share') * (i."end" - i.start);
