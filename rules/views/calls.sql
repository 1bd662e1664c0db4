-- The functions called, each with its kind.
-- materialised: classifying a name once is cheaper than once a call
--   id: references name
--   text: the function
--   kind: see the macro api_kind
create view api_name as
select n.id, n.text, api_kind(n.text) as kind from name n where n.id in (select distinct name from api_call);

-- An outermost CUDA call that began before the last span's end. Columns as in api_call.
-- materialised: a long capture holds far more calls than are analysed
--   id: references api_call
--   start: when it began (ns)
--   end: when it returned (ns)
--   process: references process
--   thread: references thread
--   name: references name
create view nearby_call as
select id, start, "end", process, thread, name from api_call
where parent is null and start < (select max("end") from span);

-- An outermost CUDA call, anywhere in the capture.
--   name: the function
--   duration_ns: how long it took (ns)
create view call_anywhere as
select k.text as name, a."end" - a.start as duration_ns from api_call a join api_name k on k.id = a.name where a.parent is null;

-- How much time all calls of one function took, anywhere in the capture.
-- materialised: sums over all calls are not cheap
--   name: the function
--   kind: see the macro api_kind
--   calls: how many
--   total_ns: their summed duration (ns)
create view api_use as
select k.text as name, k.kind, u.calls, u.total_ns
from (
    select name, count(*) as calls, cast(sum("end" - start) as bigint) as total_ns
    from api_call where parent is null group by name
) u join api_name k on k.id = u.name;

-- A call that allocates, frees or creates a context, anywhere in the capture.
-- materialised: read by several hygiene rules and suppressors
--   id: references api_call
--   process: references process
--   name: the function
--   kind: see the macro api_kind
--   start: when it began (ns)
--   duration_ns: how long it took (ns)
--   n: 1 for the first such call of its process; null where the process's beginning was not selected
--   phase: cold_start, steady_state or teardown of its process
create view setup_call as
select a.id, a.process, k.text as name, k.kind, a.start, a."end" - a.start as duration_ns,
       case when a.process not in (select process from part where begun)
            then row_number() over (partition by a.process order by a.start, a.id) end as n, w.kind as phase
from (
    select * from api_call where parent is null and name in (select id from api_name where kind in ('free', 'alloc', 'host_alloc', 'context'))
) a join api_name k on k.id = a.name
asof left join (select * from "window" where "end" > start) w on a.process = w.process and w.start <= a.start;

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
    from nearby_call a
    join api_name k on k.id = a.name
    asof join span s on a.process = s.process and s.start <= a.start
    where a.start < s."end"
)
select o.id, cast(o.seq as integer) as seq, o.process, o.thread,
       greatest(coalesce(o.previous_end, o.span_start), o.span_start) as segment_start,
       o.start, o."end", o.name, o.kind, o.loop, t.turn
from ordered o asof join turn t on o.process = t.process and t.start <= o.start;
