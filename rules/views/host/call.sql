-- An outermost CUDA call inside an analysed steady_interval, with the host time before it on its thread. A thread makes
-- one call at a time: where a damaged file says otherwise, a call ends at the latest when settings.calls_at_once others
-- have begun.
-- materialised: nearly every host-side view reads it
--   id: references api_call
--   seq: position on its thread, dense
--   process: references process
--   thread: references thread
--   segment_start: when the previous call on the thread returned (ns): from here to start is the host segment
--   start: when it began (ns)
--   end: when it returned (ns)
--   name: the function
--   recorded_before: Python functions and operators recorded since the call before it, 0 where none are
--   kind: see the macro api_kind; load where a stream is captured into a graph, whatever is called
--   loop: references loop
--   iteration: references iteration
create view call as
with ordered as (
  select
    a.id,
    a.process,
    a.thread,
    a.start,
    a.recorded_before,
    k.text as name,
    case
      when coalesce(
        last_value(k.captures ignore nulls) over (w rows between unbounded preceding and 1 preceding),
        false
      ) then 'load'
      else k.kind
    end as kind,
    s.loop,
    s.steady_interval,
    s.start as span_start,
    row_number() over (w) as seq,
    least(a."end", lead(a.start, cast(setting('calls_at_once') as integer)) over (w)) as "end"
  from analysed_api_call a
  join api_name k on k.id = a.name
  asof join steady_interval s on a.process = s.process and s.start <= a.start
  where a.start < s."end"
  window w as (partition by a.thread order by a.start, a.id)
),
followed as (
  select
    *,
    lag("end") over (partition by thread order by seq) as previous_end
  from ordered
)
select
  o.id,
  cast(o.seq as integer) as seq,
  o.process,
  o.thread,
  greatest(coalesce(o.previous_end, o.span_start), o.span_start) as segment_start,
  o.start,
  o."end",
  o.name,
  o.recorded_before,
  o.kind,
  o.loop,
  t.iteration
from followed o
asof join analysed_iteration t on o.process = t.process and t.start <= o.start;
