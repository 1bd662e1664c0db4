-- A call that held the host until the GPU had done something, and what the GPU lost by it.
-- materialised: read by all synchronisation rules and suppressors
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   thread: references thread
--   path: innermost NVTX range
--   name: the function
--   kind: sync, copy, free, alloc or host_alloc
--   start: when it began (ns)
--   duration_ns: how long it took (ns): not its cost
--   idle_ns: idle GPU time that follows from it: while it slept on, and until the host had caught up (ns)
--   most_idle_ns: the most that it may be without the profiler, where this one slowed the host down (ns)
--   busy_share: part of its duration in which its device worked or memory was taken back, 0 to 1
--   read_bytes: bytes read back that the host then looks at, by the call itself, or the copy right before or after a
--    wait, or before the event that it waits for;
--    null when it reads nothing
--   pageable: whether that copy used pageable host memory
--   sends: whether it follows at once after a copy to the GPU: as frameworks wait for one that nobody asked to be
--    asynchronous
create view blocking_call as
with caused as (
  select
    cause_call as api_call,
    sum("end" - start) as ns
  from idle_interval
  -- what lies inside another call that held the host belongs to that call
  where cause_call is not null
    and not (doing = 'call' and api_call in (select id from host_blocking_call))
    and idle_interval not in (select idle_interval from pool_release)
  group by cause_call
),
inside as (
  select
    api_call,
    sum("end" - start) as ns
  from idle_interval
  where doing = 'call'
    and call_kind in ('sync', 'copy', 'free', 'alloc', 'host_alloc')
    and cause_call is distinct from api_call
    -- while the driver takes memory back, the wait is not what the GPU waits for
    and idle_interval not in (select idle_interval from pool_release)
  group by api_call
),
copied as (
  select
    api_call,
    min(copy_kind) as copy_kind,
    sum(bytes) as bytes,
    bool_or(src_kind = 'pageable' or dst_kind = 'pageable') as pageable
  from analysed_gpu_op
  where kind = 'memcpy' and api_call is not null
  group by api_call
),
-- an asynchronous read-back followed at once by a wait: how frameworks fetch a scalar; or by the event of such a wait
copied_before as (
  select
    r.api_call,
    max(p.bytes) as bytes,
    bool_or(p.pageable) as pageable
  from (
    select
      c.id as api_call,
      b.id as copy
    from call c
    join call b on b.thread = c.thread and b.seq = c.seq - 1
    where c.kind = 'sync' and c.start - b."end" <= setting('host_work_ns')
    union all
    select
      s.api_call,
      o.api_call
    from sync s
    join analysed_gpu_op o on o.id = s.after_op
  ) r
  join copied p on p.api_call = r.copy
  where p.copy_kind = 'device_to_host'
  group by r.api_call
),
-- a wait for what is copied right after it
copied_after as (
  select
    c.id as api_call,
    p.bytes,
    p.pageable
  from call c
  join call a on a.thread = c.thread and a.seq = c.seq + 1
  join copied p on p.api_call = a.id
  where c.kind = 'sync' and p.copy_kind = 'device_to_host' and a.start - c."end" <= setting('host_work_ns')
)
select
  c.id as api_call,
  c.loop,
  c.iteration,
  c.thread,
  l.path,
  c.name,
  c.kind,
  c.start,
  c."end" - c.start as duration_ns,
  cast(coalesce(g.ns, 0) + coalesce(i.ns, 0) as bigint) as idle_ns,
  cast((coalesce(g.ns, 0) + coalesce(i.ns, 0)) * if(h.waits, coalesce(w.most_factor / w.factor, 1), 1) as bigint)
    as most_idle_ns,
  1 - least(1, coalesce(i.ns, 0) / greatest(c."end" - c.start, 1)) as busy_share,
  case
    when c.kind = 'sync' and r.bytes is not null then r.bytes
    when m.copy_kind = 'device_to_host' then m.bytes
    else a.bytes
  end as read_bytes,
  coalesce(r.pageable, m.pageable, a.pageable, false) as pageable,
  h.sends
from call c
join host_blocking_call h on h.id = c.id
left join caused g on g.api_call = c.id
left join inside i on i.api_call = c.id
left join copied m on m.api_call = c.id
left join copied_before r on r.api_call = c.id
left join copied_after a on a.api_call = c.id
left join call_place l on l.api_call = c.id
left join sync_idle_factor w on w.loop = c.loop;
