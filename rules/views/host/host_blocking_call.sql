-- A call that held the host: a wait, an allocation or free, or a copy that returned only when it was done.
-- materialised: looked up by time
--   id: references api_call
--   loop: references loop
--   thread: references thread
--   start: when it began (ns)
--   end: when it returned (ns)
--   kind: sync, copy, alloc, free or host_alloc
--   waits: whether it waited for results: a synchronisation, or a copy to the host
--   sends: whether it follows at once after a copy to the GPU: as frameworks wait for one that nobody asked to be
--    asynchronous
create view host_blocking_call as
with copied as (
  select
    api_call,
    max("end") as until,
    min(copy_kind) as copy_kind,
    -- an asynchronous copy never waits where no memory is pageable: one that returns late was done by chance
    bool_and(src_kind in ('pinned', 'device') and dst_kind in ('pinned', 'device')) as asynchronous
  from analysed_gpu_op
  where kind = 'memcpy' and api_call is not null
  group by api_call
),
sending as (
  select c.id
  from call c
  join call b on b.thread = c.thread and b.seq = c.seq - 1
  join copied o on o.api_call = b.id
  where c.kind = 'sync' and o.copy_kind = 'host_to_device' and c.start - b."end" <= setting('host_work_ns')
)
select
  c.id,
  c.loop,
  c.thread,
  c.start,
  c."end",
  c.kind,
  c.kind = 'sync' or coalesce(o.copy_kind = 'device_to_host', false) as waits,
  c.id in (select id from sending) as sends
from call c
left join copied o on o.api_call = c.id
where c.kind in ('sync', 'alloc', 'free', 'host_alloc')
  or (c.kind = 'copy' and o.until <= c."end" and not (contains(c.name, 'Async') and coalesce(o.asynchronous, false)));
