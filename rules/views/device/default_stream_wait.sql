-- A GPU operation that stood ready in its own stream while the legacy default stream and a blocking stream waited for
-- one another: it began only when the other's operation ended.
--   op: references gpu_op
--   loop: references loop
--   api_call: the call that started it
--   on_default: whether it ran on the legacy default stream; else that is where the other one ran
--   blocker: the operation it waited for (references gpu_op)
--   short: its kernel's base name; null for a copy
--   blocker_short: the other one's
--   duration_ns: how long it ran, and where it is a kernel that waited for a copy, the kernels that followed at once
--    (ns)
--   ready_ns: how long it stood ready while the other one, and what ran right before that in its stream, ran or waited
--    to start; an upload needs no result and stands ready once it is asked for (ns)
--   after_ns: from the other's end to its start (ns)
--   after_event: whether its stream has to wait for an event since the other call: the order is meant; also where
--    streams wait for events and it is not known which
--   can_share: whether the two could run together: a copy and a kernel, two directions, or a kernel with fewer blocks
--    than the GPU has multiprocessors
create view default_stream_wait as
with mixed as (
  select w.loop
  from loop_gpu_op w
  join stream s on s.id = w.stream
  group by w.loop
  having bool_or(s.kind = 'null') and bool_or(s.kind = 'blocking')
),
ran as (
  select
    w.op,
    w.loop,
    w.device,
    w.stream,
    w.kind,
    w.short,
    w.start,
    w."end",
    w.duration_ns,
    w.api_call,
    s.kind = 'null' as on_default,
    o.copy_kind,
    o.grid < d.sm_count as leaves_room,
    c.start as called,
    greatest(
      case when c."end" > w.start then c.start else c."end" end,
      lag(w."end", 1, 0) over (partition by w.stream order by w.start, w.op)
    ) as ready
  from loop_gpu_op w
  join stream s on s.id = w.stream and s.kind in ('null', 'blocking')
  join analysed_gpu_op o on o.id = w.op
  join device d on d.id = w.device
  join call c on c.id = w.api_call
  where w.loop in (select loop from mixed)
),
-- operations that follow one another in their stream at once hold others back together
joined as (
  select
    *,
    count(
      case
        when coalesce(start - before, setting('default_stream_after_ns') + 1) > setting('default_stream_after_ns')
          then 1
      end
    ) over (partition by stream order by start, op) as run
  from (
    select
      *,
      lag("end") over (partition by stream order by start, op) as before
    from ran
  )
),
held as (
  select
    *,
    min(least(start, ready)) over (partition by stream, run order by start, op) as run_ready,
    sum(duration_ns)
      over (partition by stream, run, kind order by start, op rows between current row and unbounded following)
      as rest_ns
  from joined
),
paired as (
  select
    r.*,
    b.op as blocker,
    b.short as blocker_short,
    b.kind as b_kind,
    b."end" as b_end,
    b.called as b_called,
    -- from then on they held others back, while they were held back themselves
    b.run_ready as b_ready,
    -- the last event for which its stream has to wait
    e.start as asked_at,
    r.kind <> b.kind
      or coalesce(r.copy_kind <> b.copy_kind, false)
      or coalesce(r.leaves_room, false)
      or coalesce(b.leaves_room, false) as can_share
  from held r
  asof join held b on r.device = b.device and r.on_default <> b.on_default and b."end" <= r.start
  asof left join (
    select
      y.stream,
      c.start
    from sync y
    join call c on c.id = y.api_call
    where y.kind = 'stream_wait_event' and y.stream in (select stream from ran)
  ) e on r.stream = e.stream
    and e.start <= r.called
)
select
  op,
  loop,
  api_call,
  on_default,
  blocker,
  short,
  blocker_short,
  cast(if(kind = 'kernel' and b_kind = 'memcpy', rest_ns, duration_ns) as bigint) as duration_ns,
  cast(b_end - if(copy_kind is not distinct from 'host_to_device', ready, greatest(ready, b_ready)) as bigint)
    as ready_ns,
  start - b_end as after_ns,
  coalesce(asked_at > b_called, false)
    or loop in (
      select loop
      from call
      where regexp_matches(name, 'StreamWaitEvent')
        and not exists (
          from sync y where y.api_call = call.id and y.kind = 'stream_wait_event' and y.stream is not null
        )
    ) as after_event,
  can_share
from paired
where b_called < called and b_end > ready;
