-- What the start-up of all processes consisted of. One row.
--   recorded_ns: time recorded, over all processes (ns)
--   cold_ns: of that, before the first steady iteration (ns)
--   upload_bytes: bytes copied to the GPU in it (B)
--   upload_ns: time of those copies on the GPU (ns)
--   pageable_share: part of those bytes that came from pageable memory, 0 to 1
--   frees: calls that freed device memory in it
--   free_ns: time in those calls (ns)
create view cold_start as
with cold as (
  select
    process,
    start,
    "end"
  from "window"
  where kind = 'cold_start' and "end" > start
),
upload as (
  select
    coalesce(sum(o.bytes), 0) as bytes,
    coalesce(sum(o."end" - o.start), 0) as ns,
    coalesce(sum(o.bytes) filter (where o.src_kind = 'pageable'), 0) as pageable
  from gpu_op o
  join cold c on c.process = o.process and o.start >= c.start and o.start < c."end"
  where o.copy_kind = 'host_to_device'
),
freed as (
  select
    count(*) as frees,
    coalesce(sum(duration_ns), 0) as ns
  from setup_call
  where kind = 'free' and phase = 'cold_start'
)
select
  (select sum("end" - start) from "window") as recorded_ns,
  (select sum("end" - start) from cold) as cold_ns,
  u.bytes as upload_bytes,
  u.ns as upload_ns,
  u.pageable / greatest(u.bytes, 1) as pageable_share,
  f.frees,
  f.ns as free_ns
from upload u, freed f;
