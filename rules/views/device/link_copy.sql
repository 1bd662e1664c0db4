-- A copy between host and GPU through pinned memory, with what the link could do.
--   op: references gpu_op
--   loop: references loop
--   device: references device
--   path: innermost NVTX range
--   direction: host_to_device or device_to_host
--   bytes: size (B)
--   duration_ns: how long it took (ns)
--   exposed_ns: part of that in which the GPU computed nothing (ns)
--   link_bytes_per_s: see the macro link_rate (B/s)
--   alone: whether no other copy to or from the host ran meanwhile, on any GPU
create view link_copy as
with host_copy as (
  select
    t.*,
    w.device,
    w."end",
    coalesce(
      max(w."end") over (order by w.start, w.op rows between unbounded preceding and 1 preceding) <= w.start,
      true
    )
      and coalesce(lead(w.start) over (order by w.start, w.op) >= w."end", true) as alone
  from transfer t
  join loop_gpu_op w on w.op = t.op
  where t.direction in ('host_to_device', 'device_to_host')
)
select
  h.op,
  h.loop,
  h.device,
  h.path,
  h.direction,
  h.bytes,
  h.duration_ns,
  h.exposed_ns,
  link_rate(d.cc_major) as link_bytes_per_s,
  h.alone
from host_copy h
join device d on d.id = h.device
where not h.pageable;
