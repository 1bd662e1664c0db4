-- An outermost CUDA call anywhere in the capture.
--   id: references api_call
--   process: references process
--   thread: references thread
--   start: when it began (ns)
--   end: when it returned (ns)
--   name: the function
--   kind: see the macro api_kind
--   phase: cold_start, steady_state or teardown of its process
create view any_call as
select a.id, a.process, a.thread, a.start, a."end", k.text as name, k.kind, w.kind as phase
from api_call a
join api_name k on k.id = a.name
asof left join (select * from "window" where "end" > start) w on a.process = w.process and w.start <= a.start
where a.parent is null;

-- The functions called, each with its kind.
-- materialised: classifying a name once is cheaper than once a call
--   id: references name
--   text: the function
--   kind: see the macro api_kind
create view api_name as
select n.id, n.text, api_kind(n.text) as kind from name n where n.id in (select distinct name from api_call);

-- An outermost CUDA call inside an analysed span, with the host time before it on its thread.
-- materialised: nearly every host-side view reads it
--   id: references api_call
--   seq: position on its thread, dense
--   process: references process
--   thread: references thread
--   segment_start: when the previous call on the thread returned (ns): from here to start is the host segment
--   start: when it began (ns)
--   end: when it returned (ns)
--   name: the function
--   kind: see the macro api_kind
--   loop: references loop
--   turn: references iteration
create view call as
with ordered as (
    select a.id, a.process, a.thread, a.start, a."end", k.text as name, k.kind, s.loop, s.span,
           row_number() over (partition by a.thread order by a.start, a.id) as seq,
           lag(a."end") over (partition by a.thread order by a.start, a.id) as previous_end, s.start as span_start
    from api_call a
    join api_name k on k.id = a.name
    asof join span s on a.process = s.process and s.start <= a.start
    where a.parent is null and a.start < s."end"
)
select o.id, cast(o.seq as integer) as seq, o.process, o.thread,
       greatest(coalesce(o.previous_end, o.span_start), o.span_start) as segment_start,
       o.start, o."end", o.name, o.kind, o.loop, t.turn
from ordered o asof join turn t on o.process = t.process and t.start <= o.start;
