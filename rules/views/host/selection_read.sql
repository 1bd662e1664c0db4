-- A wait that a selection makes (boolean mask, nonzero, unique): for how many elements it kept, or between the kernels
-- of a library of parallel algorithms (Thrust, CUB) that sort for it and select.
--   api_call: references api_call
--   loop: references loop
--   path: innermost NVTX range
--   read_bytes: bytes read back (B); null where it only waits
--   idle_ns: idle GPU time that follows from it (ns)
--   most_idle_ns: the most that it may be without the profiler (ns)
create view selection_read as
with launched as (
  select
    c.thread,
    c.start,
    c."end",
    regexp_matches(
      l.short,
      'DeviceSelect|DeviceCompact|nonzero|DevicePartition|DeviceUnique|masked_select|DeviceRunLength'
    ) as selects,
    regexp_matches(l.name, '(thrust|cub)::') as of_library
  from launch l
  join call c on c.id = l.api_call
),
selecting as (
  select
    thread,
    start
  from launched
  where selects
),
following as (
  select
    b.api_call,
    b.loop,
    b.path,
    b.read_bytes,
    b.idle_ns,
    b.most_idle_ns,
    b.start - s.start <= setting('cpu_phase_ns') as selected_before
  from blocking_call b
  asof left join selecting s on b.thread = s.thread and s.start <= b.start
  where b.read_bytes is not null or (b.kind = 'sync' and not b.sends)
),
-- the library's own waits come right after its kernels
own_wait as (
  select
    b.api_call,
    b.thread,
    b.start + b.duration_ns as "end",
    l.of_library and b.start - l."end" <= setting('host_work_ns') as of_library
  from blocking_call b
  asof join launched l on b.thread = l.thread and l.start <= b.start
  where b.kind = 'sync' and b.read_bytes is null
),
preparing as (
  select w.api_call
  from own_wait w
  asof join selecting s on w.thread = s.thread and s.start >= w."end"
  where w.of_library and s.start - w."end" <= setting('cpu_phase_ns')
)
select
  f.api_call,
  f.loop,
  f.path,
  f.read_bytes,
  f.idle_ns,
  f.most_idle_ns
from following f
left join own_wait w using (api_call)
where (f.read_bytes is not null and f.selected_before)
  or (f.read_bytes is null and w.of_library and (f.selected_before or f.api_call in (select api_call from preparing)));
