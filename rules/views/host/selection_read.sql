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
waiting as (
  select
    b.*,
    b.start + b.duration_ns as "end",
    b.start - s.start <= setting('cpu_phase_ns') as selected_before
  from blocking_call b
  asof left join selecting s on b.thread = s.thread and s.start <= b.start
  where b.read_bytes is not null or (b.kind = 'sync' and not b.sends)
),
-- a size is read right after the kernels that count and select, a library's own waits come right after its kernels:
-- what the program computes of the elements that were kept, and reads, is none
following as (
  select
    w.*,
    case
      when w.read_bytes is not null then l.of_library or l.selects
      else l.of_library and w.kind = 'sync' and w.start - l."end" <= setting('host_work_ns')
    end as of_library
  from waiting w
  asof left join launched l on w.thread = l.thread and l.start <= w.start
),
preparing as (
  select f.api_call
  from following f
  asof join selecting s on f.thread = s.thread and s.start >= f."end"
  where f.of_library
    and s.start - f."end" <= if(f.read_bytes is null, setting('cpu_phase_ns'), setting('delayed_most_ns'))
)
select
  api_call,
  loop,
  path,
  read_bytes,
  idle_ns,
  most_idle_ns
from following
where of_library and (selected_before or api_call in (select api_call from preparing));
