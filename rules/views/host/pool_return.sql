-- A burst of frees with which a framework gives the blocks of its memory pool back to the driver. Frees without another
-- step between them are one burst.
-- materialised: two rules and the host's work on results read it
--   loop: references loop
--   iteration: references iteration
--   api_call: its first free (references api_call)
--   frees: how many blocks go back
--   idle_intervals: the idle time in long host work right before it, as of a garbage collection that is to find what
--    can
--     be given back; null for none, and where the loop's bursts are short or the work is another function's
--     (references idle_interval)
--   before_ns: how long that is (ns)
create view pool_return as
-- results that the host may work on
with copied_back as (
  select api_call from transfer where direction = 'device_to_host' and bytes > setting('staged_bytes')
),
step as (
  select
    id,
    loop,
    iteration,
    thread,
    seq,
    kind,
    count_if(kind in ('launch', 'graph_launch', 'copy', 'alloc')) over (partition by thread order by seq) as burst,
    last_value(
      if(b.api_call is not null, 'result', if(kind in ('launch', 'graph_launch'), kind, null)) ignore nulls
    ) over (partition by thread order by seq) = 'result' as after_copy
  from call c
  left join copied_back b on b.api_call = c.id
  where loop in (select loop from call where kind = 'free')
    and exists (from framework_seen where framework in ('pytorch', 'cupy', 'jax'))
),
returned as (
  select
    loop,
    iteration,
    arg_min(id, seq) as api_call,
    arg_min(after_copy, seq) as after_copy,
    count(*) as frees
  from step
  where kind = 'free'
  group by loop, iteration, thread, burst
),
-- the place that frees, and the one that works before the first free
freeing as (
  select
    r.loop,
    mode(struct_pack(file := s.file, function := s.function, line := s.line) order by s.file, s.line) as at
  from step r
  join call_sample s on s.api_call = r.id
  where r.kind = 'free' and s.inside
  group by r.loop
),
working as (
  select
    r.api_call,
    mode(struct_pack(file := s.file, function := s.function, line := s.line) order by s.file, s.line) as at,
    -- a collection is built into Python: no function of a library is inside
    bool_and(s.line = y.frames[1].line and s.function = y.frames[1].function) as in_own_code
  from returned r
  join call_sample s on s.api_call = r.api_call
  join py_sample y on y.id = s.sample
  where not s.inside
  group by r.api_call
),
emptied as (
  select
    loop,
    sum(r.frees) >= setting('pool_burst') * count(*)
      and count(distinct r.iteration) >= setting('pool_iteration_share') * any_value(l.iterations) as at_once
  from returned r
  join loop_facts l using (loop)
  group by loop
)
select
  r.loop,
  r.iteration,
  r.api_call,
  cast(r.frees as integer) as frees,
  list(p.idle_interval order by p.idle_interval) filter (p.idle_interval is not null) as idle_intervals,
  coalesce(sum(p."end" - p.start), 0)::bigint as before_ns
from returned r
join emptied e using (loop)
left join freeing f using (loop)
left join working w using (api_call)
left join idle_interval p on p.api_call = r.api_call
  and e.at_once
  and p.doing = 'segment'
  and p.leaf = 'host_work'
  and p.segment_ns >= setting('cpu_phase_ns')
  and coalesce(f.at.function = w.at.function and f.at.file = w.at.file, w.at is null)
  -- what follows a copy may work on what was copied, but for the line that frees and the ones right before it
  and (
    not coalesce(r.after_copy, false)
      or w.in_own_code
      and w.at.line between f.at.line - setting('collection_lines') and f.at.line
  )
group by r.loop, r.iteration, r.api_call, r.frees;
