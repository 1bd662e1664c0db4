-- A wait for a value that follows a selection (boolean mask, nonzero, unique): how many elements it kept.
--   api_call: references api_call
--   loop: references loop
--   path: innermost NVTX range
--   read_bytes: bytes read back (B)
--   idle_ns: idle GPU time that follows from it (ns)
create view selection_read as
with selecting as (
  select
    c.thread,
    c.start
  from launch l
  join call c on c.id = l.api_call
  where regexp_matches(
    l.short,
    'DeviceSelect|DeviceCompact|nonzero|DevicePartition|DeviceUnique|masked_select|DeviceRunLength'
  )
)
select
  b.api_call,
  b.loop,
  b.path,
  b.read_bytes,
  b.idle_ns
from blocking_call b
asof join selecting s on b.thread = s.thread and s.start <= b.start
where b.start - s.start <= setting('cpu_phase_ns');
