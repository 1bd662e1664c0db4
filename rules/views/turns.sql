-- A turn of a loop that is analysed: after warm-up, and within the first `max_ops` operations of a long loop.
--   turn: references iteration
--   loop: references loop
--   process: references process
--   thread: the thread that drives the loop
--   start: when it began (ns)
--   end: when the next turn began, or the GPU had drained (ns)
create view turn as
select id as turn, loop, process, thread, start, "end"
from iteration where in_steady_state and analysed and "end" > start;

-- A stretch of turns without a pause between them; all shares of a loop refer to the sum of its spans.
-- materialised: every timeline view is clipped to it
--   span: dense identifier
--   loop: references loop
--   process: references process
--   thread: the thread that drives the loop
--   start: when its first turn began (ns)
--   end: when its last turn ended (ns)
--   turns: how many turns it holds
create view span as
with marked as (
    select *, case when start = lag("end") over (partition by loop, process, thread order by start) then 0 else 1 end as begins
    from turn
), grouped as (
    select *, sum(begins) over (partition by loop, process, thread order by start) as stretch from marked
)
select cast(row_number() over (order by loop, process, min(start)) - 1 as integer) as span, loop, process, thread,
       min(start) as start, max("end") as "end", cast(count(*) as integer) as turns
from grouped group by loop, process, thread, stretch;

-- A GPU operation that began or ended while any span lasted. Columns as in gpu_op.
-- materialised: a long capture holds far more operations than are analysed
--   id: references gpu_op
--   start: when it began (ns)
--   end: when it ended (ns)
--   device: references device
--   process: references process
--   stream: references stream
--   kind: kernel, memcpy, memset or graph
--   name: references name
--   api_call: the outermost call that started it, when traced
--   bytes: bytes copied or set (B)
--   copy_kind: direction of a copy
--   src_kind: kind of memory read
--   dst_kind: kind of memory written
--   grid: blocks in the grid
--   block: threads in a block
create view nearby_op as
select id, start, "end", device, process, stream, kind, name, api_call, bytes, copy_kind, src_kind, dst_kind, grid, block
from gpu_op
where "end" > start and "end" > (select min(start) from span) and start < (select max("end") from span);

-- A GPU that a span used.
-- materialised: joins every operation with its span once
--   span: references span
--   loop: references loop
--   process: references process
--   device: references device
--   start: the span's beginning (ns)
--   end: the span's end (ns)
create view span_device as
select s.span, s.loop, s.process, o.device, s.start, s."end"
from (select distinct loop, process from span) l
join (
    select distinct s.loop, o.process, o.device
    from nearby_op o asof join span s on o.process = s.process and s.start <= o.start where o.start < s."end"
) o on o.loop = l.loop and o.process = l.process
join span s on s.loop = l.loop and s.process = l.process;
