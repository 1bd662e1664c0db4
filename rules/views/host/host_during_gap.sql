-- A part of a gap in which the launching thread did one thing, before it is known what that follows from.
-- materialised: idle_interval reads it twice
--   gap: references gap
--   loop: references loop
--   process: references process
--   device: references device
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   doing: segment (the host was between two calls), call (inside one) or latency (the call had returned, the GPU had
--          not begun)
--   api_call: the call the thread was in, or was heading for
--   call_kind: that call's kind
--   segment_ns: how long the whole host segment before that call was (ns)
create view host_during_gap as
with bounded as (
  select
    g.*,
    coalesce(b.seq, 0) + 1 as first_seq,
    n.seq as next_seq,
    n."end" as next_end,
    e.seq as last_seq
  from gap g
  asof left join (
    select
      thread,
      seq,
      "end"
    from call
  ) b on g.thread = b.thread
    and b."end" <= g.start
  left join call n on n.id = g.next_call
  asof left join (
    select
      thread,
      seq,
      segment_start
    from call
  ) e on g.thread = e.thread
    and e.segment_start < g."end"
),
stepped as (
  select
    gap,
    loop,
    process,
    device,
    thread,
    start,
    "end",
    unnest(range(first_seq, coalesce(next_seq, last_seq, first_seq - 1) + 1)) as seq
  from bounded
),
cut as (
  select
    s.gap,
    s.loop,
    s.process,
    s.device,
    s.thread,
    greatest(s.start, c.segment_start) as start,
    least(s."end", c.start) as "end",
    'segment' as doing,
    c.id as api_call,
    c.kind as call_kind,
    c.start - c.segment_start as segment_ns
  from stepped s
  join call c on c.thread = s.thread and c.seq = s.seq
  union all
  select
    s.gap,
    s.loop,
    s.process,
    s.device,
    s.thread,
    greatest(s.start, c.start),
    least(s."end", c."end"),
    'call',
    c.id,
    c.kind,
    c.start - c.segment_start
  from stepped s
  join call c on c.thread = s.thread and c.seq = s.seq
  union all
  select
    b.gap,
    b.loop,
    b.process,
    b.device,
    b.thread,
    greatest(b.start, b.next_end),
    b."end",
    'latency',
    b.next_call,
    n.kind,
    n.start - n.segment_start
  from bounded b
  join call n on n.id = b.next_call
),
covered as (
  select * from cut where "end" > start
),
-- what no traced call explains: the end of a steady_interval, operations without a traced call
rest as (
  select
    g.gap,
    g.loop,
    g.process,
    g.device,
    g.thread,
    coalesce(max(c."end"), g.start) as start,
    g."end",
    'segment' as doing,
    g.next_call as api_call,
    null as call_kind,
    g."end" - g.start as segment_ns
  from gap g
  left join covered c on c.gap = g.gap
  group by g.gap, g.loop, g.process, g.device, g.thread, g.next_call, g.start, g."end"
  having g."end" > coalesce(max(c."end"), g.start)
)
select *
from covered
union all
select *
from rest;
