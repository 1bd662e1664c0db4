-- A copy that a loop made, with the time nothing else hid it.
-- materialised: read by all transfer rules
--   op: references gpu_op
--   api_call: references api_call
--   loop: references loop
--   iteration: references iteration
--   path: innermost NVTX range
--   direction: host_to_device, device_to_host, device_to_device, peer_to_peer …
--   bytes: size (B)
--   pageable: whether host memory that is not pinned took part
--   start: when the copy began on the GPU (ns)
--   duration_ns: how long the copy took on the GPU (ns)
--   call_ns: how long the host was in the call (ns)
--   exposed_ns: part of duration_ns in which the GPU computed nothing (ns)
--   blocking: whether the host stayed in the call until the copy was done
--   idle_ns: idle GPU time around the call: staging, returning, starting the next work (ns)
create view transfer as
with copying as (
  select
    w.op,
    w.api_call,
    w.loop,
    w.iteration,
    w.device,
    w.start,
    w."end",
    w.duration_ns
  from loop_gpu_op w
  where w.kind = 'memcpy'
),
exposed as (
  select
    c.op,
    sum(least(c."end", d."end") - greatest(c.start, d.start)) as ns
  from copying c
  join device_state d on d.device = c.device and d.start < c."end" and d."end" > c.start
  where d.state = 'copy'
  group by c.op
),
around as (
  select
    api_call,
    sum(ns) as ns
  from (
    select
      api_call,
      "end" - start as ns
    from idle_interval
    where call_kind = 'copy' and doing <> 'segment' and cause_call is distinct from api_call
    union all
    select
      cause_call,
      "end" - start
    from idle_interval
    where cause_kind = 'copy'
      and not (call_kind is not distinct from 'copy' and doing <> 'segment' and api_call <> cause_call)
  )
  group by api_call
),
shared as (
  select
    api_call,
    count(*) as copies
  from copying
  group by api_call
)
select
  c.op,
  c.api_call,
  c.loop,
  c.iteration,
  p.path,
  o.copy_kind as direction,
  o.bytes,
  coalesce(o.src_kind = 'pageable' or o.dst_kind = 'pageable', false) as pageable,
  c.start,
  c.duration_ns,
  coalesce(a."end" - a.start, 0) as call_ns,
  cast(coalesce(e.ns, 0) as bigint) as exposed_ns,
  coalesce(a."end" >= c."end", false) as blocking,
  cast(coalesce(i.ns, 0) / s.copies as bigint) as idle_ns
from copying c
join analysed_gpu_op o on o.id = c.op
left join exposed e on e.op = c.op
left join call a on a.id = c.api_call
left join call_place p on p.api_call = c.api_call
left join around i on i.api_call = c.api_call
left join shared s on s.api_call is not distinct from c.api_call;
