-- A kernel of a loop on several streams that began as soon as one of another stream had ended, although it had been
-- queued before and nothing that was traced made it wait.
--   op: references gpu_op
--   before_op: the kernel it waited for (references gpu_op)
--   loop: references loop
--   name: the kernel's full name
--   duration_ns: how long it ran (ns)
--   held_ns: how long it had been ready while the other one ran (ns)
--   delay_ns: from the other one's end to its start (ns)
--   fill: blocks of the kernel it waited for, in units of the GPU's multiprocessors
--   default_stream: whether one of the two ran on the legacy default stream, which waits for the others and they for
--    it
create view stream_serialization as
with several as (
  select
    w.loop,
    o.process,
    w.device
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where w.kind = 'kernel' and w.class = 'compute'
  group by w.loop, o.process, w.device
  having count(distinct w.stream) > 1
),
asked as (
  select
    id,
    start,
    "end",
    max(case when name like '%StreamWaitEvent%' then start end) over (partition by thread order by seq) as waited
  from call
  where loop in (select loop from several)
),
op as (
  select
    w.op,
    w.loop,
    w.device,
    o.process,
    w.stream,
    o.grid,
    w.kind,
    w.class,
    w.name,
    w.start,
    w."end",
    w.duration_ns,
    c.waited,
    c."end" as queued,
    lag(w."end") over s as stream_free,
    lag(c.start) over s as called_before
  from several v
  join loop_gpu_op w on w.loop = v.loop and w.device = v.device
  join analysed_gpu_op o on o.id = w.op and o.process = v.process
  join asked c on c.id = w.api_call
  window s as (partition by w.stream order by w.start, w.op)
),
paired as (
  select
    *,
    lag(op) over d as before_op,
    lag(stream) over d as before_stream,
    lag(start) over d as before_start,
    lag("end") over d as before_end,
    lag(grid) over d as before_grid
  from op
  where kind = 'kernel' and class = 'compute'
  window d as (partition by loop, process, device order by start, op)
),
ready as (
  select
    *,
    greatest(queued, coalesce(stream_free, 0), before_start) as ready
  from paired
  where stream <> before_stream
    and before_end <= start
    and greatest(queued, coalesce(stream_free, 0)) < before_end
    and coalesce(waited < called_before, waited is null)
)
select
  r.op,
  r.before_op,
  r.loop,
  r.name,
  r.duration_ns,
  r.before_end - r.ready as held_ns,
  r.start - r.before_end as delay_ns,
  r.before_grid / d.sm_count as fill,
  coalesce('null' in (s.kind, b.kind) and 'non_blocking' not in (s.kind, b.kind), false) as default_stream
from ready r
join device d on d.id = r.device
join stream s on s.id = r.stream
join stream b on b.id = r.before_stream;
