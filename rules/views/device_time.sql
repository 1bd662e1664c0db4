-- What a GPU was doing, over each span that used it: disjoint, complete, in time order. All streams together;
-- a CUDA graph launch counts as compute; idle shorter than settings.idle_noise_ns counts as the state before it.
-- materialised: the budget, the gaps and every price rest on it
--   span: references span
--   loop: references loop
--   device: references device
--   start: when the state began (ns)
--   end: when it ended (ns)
--   state: compute, communication, copy or idle (compute hides communication, which hides copies)
create view device_state as
with op as (
    select o.device, o.start, o."end", op_class(o.kind, n.short) as class
    from nearby_op o left join name n on n.id = o.name
), change as (
    select s.span, s.loop, s.device, greatest(o.start, s.start) as t, o.class, 1 as step
    from op o asof join span_device s on o.device = s.device and s.start <= o.start where o.start < s."end"
    union all
    select s.span, s.loop, s.device, least(o."end", s."end"), o.class, -1
    from op o asof join span_device s on o.device = s.device and s.start <= o.start where o.start < s."end"
    union all
    select span, loop, device, start, 'none', 0 from span_device
    union all
    select span, loop, device, "end", 'none', 0 from span_device
), summed as (
    select span, loop, device, t,
           sum(case when class = 'compute' then step else 0 end) as compute,
           sum(case when class = 'communication' then step else 0 end) as communication,
           sum(case when class = 'copy' then step else 0 end) as copy
    from change group by span, loop, device, t
), running as (
    select span, loop, device, t, lead(t) over (w) as until,
           sum(compute) over (w) as compute, sum(communication) over (w) as communication, sum(copy) over (w) as copy
    from summed window w as (partition by span, device order by t)
), named as (
    select *, case when compute > 0 then 'compute' when communication > 0 then 'communication'
                   when copy > 0 then 'copy' else 'idle' end as raw_state
    from running where until > t
), smoothed as (
    select *, case when raw_state = 'idle' and until - t < setting('idle_noise_ns')
                   then coalesce(lag(raw_state) over (w), 'compute') else raw_state end as state
    from named window w as (partition by span, device order by t)
), marked as (
    select *, case when state = lag(state) over (partition by span, device order by t) then 0 else 1 end as begins
    from smoothed
), grouped as (
    select *, sum(begins) over (partition by span, device order by t) as stretch from marked
)
select span, any_value(loop) as loop, device, min(t) as start, max(until) as "end", any_value(state) as state
from grouped group by span, device, stretch;

-- A stretch in which a GPU had nothing to do, inside a span, and what ended it.
-- materialised: several views look at gaps from different sides
--   gap: dense identifier
--   span: references span
--   loop: references loop
--   process: references process
--   device: references device
--   start: when the GPU ran dry (ns)
--   end: when the next operation began, or the span ended (ns)
--   next_op: the operation that ended it; null at the span's end
--   next_call: the call that started that operation, when traced
--   thread: the thread that made that call, else the loop's
create view gap as
with idle as (
    select row_number() over (order by d.span, d.device, d.start) - 1 as gap, d.span, d.loop, s.process, d.device,
           d.start, d."end", s.thread as loop_thread
    from device_state d join span s using (span) where d.state = 'idle'
), first_op as (
    select device, start, min(id) as op from nearby_op group by device, start
)
select cast(i.gap as integer) as gap, i.span, i.loop, i.process, i.device, i.start, i."end", o.id as next_op,
       o.api_call as next_call, coalesce(a.thread, i.loop_thread) as thread
from idle i
left join first_op f on f.device = i.device and f.start = i."end"
left join nearby_op o on o.id = f.op
left join nearby_call a on a.id = o.api_call;

-- How far the waits of a loop reach. Without them the loop could not be shorter than its GPU work, nor than what its host
-- does between them; the host runs up to settings.host_inflation times slower under the profiler. What is left above
-- the longer of the two follows from the waits, in proportion to their length.
-- materialised: looked up for each wait
--   loop: references loop
--   factor: idle time that follows from a wait, in units of the wait's length, at least 1
create view wait_reach as
with length as (
    select loop, sum("end" - start) as ns from span group by loop
), busy as (  -- a loop on several devices is paced by the busiest
    select loop, max(ns) as ns from (
        select loop, device, sum("end" - start) as ns from device_state where state <> 'idle' group by loop, device
    ) group by loop
), waited as (
    select c.loop, sum(c."end" - c.start) as ns
    from call c join holding_call h on h.id = c.id join span s on s.loop = c.loop and s.process = c.process and s.thread = c.thread
    where h.waits and c.start >= s.start and c.start < s."end" group by c.loop
), fetched as (  -- waiting for input takes as long without the profiler
    select h.loop, sum(h."end" - h.start) as ns
    from host_segment h join span s on s.loop = h.loop and s.thread = h.thread and h.start >= s.start and h.start < s."end"
    where h.fetches_input group by h.loop
), paced as (
    select l.loop, l.ns, w.ns as waited_ns, coalesce(b.ns, 0) as busy_ns, least(coalesce(i.ns, 0), l.ns - w.ns) as fetched_ns
    from length l join waited w using (loop) left join busy b using (loop) left join fetched i using (loop) where w.ns > 0
)
select loop, greatest(1, (ns - greatest(busy_ns, fetched_ns + (ns - waited_ns - fetched_ns) / setting('host_inflation'))) / waited_ns) as factor
from paced;

-- A call that held the host: a wait, an allocation or free, or a copy that returned only when it was done.
-- materialised: looked up by time
--   id: references api_call
--   loop: references loop
--   thread: references thread
--   start: when it began (ns)
--   end: when it returned (ns)
--   kind: sync, copy, alloc, free or host_alloc
--   waits: whether it waited for results: a synchronisation, or a copy to the host
create view holding_call as
select c.id, c.loop, c.thread, c.start, c."end", c.kind, c.kind = 'sync' or coalesce(o.copy_kind = 'device_to_host', false) as waits
from call c
left join (
    select api_call, max("end") as until, min(copy_kind) as copy_kind from nearby_op where kind = 'memcpy' and api_call is not null group by api_call
) o on o.api_call = c.id
where c.kind in ('sync', 'alloc', 'free', 'host_alloc') or (c.kind = 'copy' and o.until <= c."end");

-- A part of a gap in which the launching thread did one thing, before it is known what that follows from.
-- materialised: idle_piece reads it twice
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
    select g.*, coalesce(b.seq, 0) + 1 as first_seq, n.seq as next_seq, n."end" as next_end, e.seq as last_seq
    from gap g
    asof left join (select thread, seq, "end" from call) b on g.thread = b.thread and b."end" <= g.start
    left join call n on n.id = g.next_call
    asof left join (select thread, seq, segment_start from call) e on g.thread = e.thread and e.segment_start < g."end"
), stepped as (
    select gap, loop, process, device, thread, start, "end",
           unnest(range(first_seq, coalesce(next_seq, last_seq, first_seq - 1) + 1)) as seq
    from bounded
), cut as (
    select s.gap, s.loop, s.process, s.device, s.thread, greatest(s.start, c.segment_start) as start,
           least(s."end", c.start) as "end", 'segment' as doing, c.id as api_call, c.kind as call_kind,
           c.start - c.segment_start as segment_ns
    from stepped s join call c on c.thread = s.thread and c.seq = s.seq
    union all
    select s.gap, s.loop, s.process, s.device, s.thread, greatest(s.start, c.start), least(s."end", c."end"), 'call',
           c.id, c.kind, c.start - c.segment_start
    from stepped s join call c on c.thread = s.thread and c.seq = s.seq
    union all
    select b.gap, b.loop, b.process, b.device, b.thread, greatest(b.start, b.next_end), b."end", 'latency',
           b.next_call, n.kind, n.start - n.segment_start
    from bounded b join call n on n.id = b.next_call
), covered as (
    select * from cut where "end" > start
), rest as (  -- what no traced call explains: the end of a span, operations without a traced call
    select g.gap, g.loop, g.process, g.device, g.thread, coalesce(max(c."end"), g.start) as start, g."end", 'segment' as doing,
           g.next_call as api_call, null as call_kind, g."end" - g.start as segment_ns
    from gap g left join covered c on c.gap = g.gap
    group by g.gap, g.loop, g.process, g.device, g.thread, g.next_call, g.start, g."end"
    having g."end" > coalesce(max(c."end"), g.start)
)
select * from covered union all select * from rest;

-- A part of a gap with its cause. Idle time after a call that held the host follows from it for as long as it took:
-- without it, everything the host did later would have happened earlier by that much. For waits see wait_reach.
-- materialised: the budget and every price of idle time rest on it
--   piece: dense identifier
--   gap: references gap
--   loop: references loop
--   turn: references iteration
--   device: references device
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   doing: see host_during_gap
--   api_call: the call the thread was in, or was heading for
--   call_kind: that call's kind
--   segment_ns: how long the whole host segment before that call was (ns)
--   cause_call: the earlier call that held the host and from which this piece follows
--   cause_kind: its kind
--   input: whether the host segment fetched input, by its Python stack or its NVTX range
--   category: idle_launch, idle_sync, idle_input, idle_allocation or idle_other: its place in the budget
create view idle_piece as
with held as (  -- calls with no launch between them hold the host together: a read-back, then the wait for it; the longest names it
    select h.thread, t.turn, max(h."end") as "end", arg_max(h.id, (h."end" - h.start, h.id)) as id, arg_max(h.kind, (h."end" - h.start, h.id)) as kind,
           cast(sum((h."end" - h.start) * case when h.waits then coalesce(w.factor, 1) else 1 end - coalesce(i.ns, 0)) as bigint) as reach_ns
    from holding_call h left join wait_reach w using (loop)
    left join (  -- the GPU's idle time inside the call is lost to it already
        select api_call, sum("end" - start) as ns from host_during_gap where doing = 'call' group by api_call
    ) i on i.api_call = h.id
    asof left join (select thread, seq, start from call where kind in ('launch', 'graph_launch')) l
        on h.thread = l.thread and l.start <= h.start
    join call t on t.id = h.id
    group by h.thread, t.turn, l.seq
), reaching as (  -- and what earlier ones of the turn left over counts too
    select *, sum(reach_ns) over (partition by thread, turn order by "end") as turn_reach_ns from held
), waited as (
    select r.*, r."end" - r.start as ns, b.id as wait, b.kind as wait_kind, b.reach_ns as wait_ns, b.turn_reach_ns,
           sum(r."end" - r.start) over (partition by r.device, b.id order by r.start, r."end") as so_far,
           sum(r."end" - r.start) over (partition by r.device, r.thread, b.turn order by r.start, r."end") as turn_so_far
    from host_during_gap r asof left join reaching b on r.thread = b.thread and b."end" <= r.start
), split as (  -- the part within the wait's shadow, then the part beyond it
    select *, case when wait is null then 0 else
               cast(greatest(0, least(ns, greatest(wait_ns - (so_far - ns), turn_reach_ns - (turn_so_far - ns)))) as bigint) end as shadow
    from waited
), parts as (
    select * exclude (wait, wait_kind, start, "end"), start, start + shadow as "end", wait as cause_call, wait_kind as cause_kind
    from split where shadow > 0
    union all
    select * exclude (wait, wait_kind, start, "end"), start + shadow, "end", null, null from split where shadow < ns
)
select cast(row_number() over (order by p.gap, p.start, p."end") - 1 as integer) as piece, p.gap, p.loop, t.turn, p.device, p.thread,
       p.start, p."end", p.doing, p.api_call, p.call_kind, p.segment_ns, p.cause_call, p.cause_kind,
       coalesce(i.fetches_input, false) as input,
       case when p.doing = 'call' and p.call_kind in ('alloc', 'free', 'host_alloc', 'pool') then 'idle_allocation'
            when p.doing = 'call' and p.call_kind in ('load', 'context') then 'idle_other'
            when p.doing = 'segment' and coalesce(i.fetches_input, false) then 'idle_input'
            when p.doing = 'segment' and p.segment_ns >= setting('cpu_phase_ns') then 'idle_other'
            when p.cause_kind in ('alloc', 'free', 'host_alloc') then 'idle_allocation'
            when p.cause_kind in ('sync', 'copy') then 'idle_sync'
            when p.doing = 'call' and p.api_call in (select id from holding_call) and p.api_call is distinct from g.next_call then 'idle_sync'
            when p.doing = 'segment' and p.segment_ns >= setting('host_work_ns') then 'idle_other'
            else 'idle_launch' end as category
from parts p
join gap g on g.gap = p.gap
left join host_segment i on i.api_call = p.api_call
asof left join (select turn, process, start from turn) t on p.process = t.process and t.start <= p.start;

-- Where the time of each loop goes: every piece of every device it used, disjoint and complete.
--   loop: references loop
--   device: references device; null for a loop that never used one
--   start: when the piece began (ns)
--   end: when it ended (ns)
--   category: compute, exposed_communication, exposed_copy, idle_launch, idle_sync, idle_input, idle_allocation, idle_other
create view time_piece as
select loop, device, start, "end", category from idle_piece
union all
select loop, device, start, "end",
       case state when 'communication' then 'exposed_communication' when 'copy' then 'exposed_copy' else 'compute' end
from device_state where state <> 'idle'
union all
select loop, null, start, "end", 'idle_other' from span s
where not exists (select 1 from span_device d where d.span = s.span);

-- The time budget of each loop.
-- materialised: read by most rules and by the report
--   loop: references loop
--   category: see time_piece
--   ns: time in it, summed over turns and devices (ns)
--   share: its part of the loop's time, 0 to 1
create view loop_budget as
select loop, category, cast(sum("end" - start) as bigint) as ns,
       sum("end" - start) / sum(sum("end" - start)) over (partition by loop) as share
from time_piece group by loop, category;
