-- An upload to one GPU of as many bytes as had just been downloaded from another, by the same host thread.
--   upload: references gpu_op
--   download: references gpu_op
--   loop: references loop
--   path: innermost NVTX range of the upload
--   bytes: size (B)
--   delay_ns: from the download's end to the call that uploads (ns)
--   calls_between: CUDA calls of the thread between the two
--   lost_ns: part of both in which the GPUs computed nothing, and idle time around them (ns)
create view d2d_via_host as
with host_copy as (
  select
    t.op,
    t.loop,
    t.path,
    t.direction,
    t.bytes,
    w.device,
    w."end",
    c.thread,
    c.seq,
    c.start as called,
    t.exposed_ns + t.idle_ns as lost_ns
  from transfer t
  join loop_gpu_op w on w.op = t.op
  join call c on c.id = t.api_call
  where t.direction in ('host_to_device', 'device_to_host')
    and t.loop in (select loop from loop_facts where devices > 1)
),
source as (
  select distinct
    loop,
    device
  from host_copy
  where direction = 'device_to_host'
),
-- what came down from a GPU, and each upload to another one after it, in time order
step as (
  select
    loop,
    device,
    thread,
    bytes,
    "end" as time,
    op as download,
    seq,
    lost_ns,
    null as upload,
    null as path,
    null as upload_seq,
    null as upload_lost_ns
  from host_copy
  where direction = 'device_to_host'
  union all
  select
    h.loop,
    s.device,
    h.thread,
    h.bytes,
    h.called,
    null,
    null,
    null,
    h.op,
    h.path,
    h.seq,
    h.lost_ns
  from host_copy h
  join source s on s.loop = h.loop and s.device <> h.device
  where h.direction = 'host_to_device'
),
paired as (
  select
    *,
    last_value(download ignore nulls) over t as last_download,
    last_value(seq ignore nulls) over t as last_seq,
    last_value(lost_ns ignore nulls) over t as last_lost_ns,
    last_value(case when upload is null then time end ignore nulls) over t as last_time
  from step
  window t as (partition by loop, device, thread, bytes order by time, upload nulls first)
)
select
  upload,
  last_download as download,
  loop,
  path,
  bytes,
  time - last_time as delay_ns,
  upload_seq - last_seq - 1 as calls_between,
  upload_lost_ns + last_lost_ns as lost_ns
from paired
where upload is not null and last_download is not null;
