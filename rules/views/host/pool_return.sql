-- A burst of frees with which a framework gives the blocks of its memory pool back to the driver. Frees without another
-- step between them are one burst.
-- materialised: two rules read it
--   loop: references loop
--   iteration: references iteration
--   api_call: its first free (references api_call)
--   frees: how many blocks go back
--   idle_intervals: the idle time in long host work right before it, such as a garbage collection that is to find
--    what can be given back; null for none (references idle_interval)
--   before_ns: how long that is (ns)
create view pool_return as
with step as (
  select
    id,
    loop,
    iteration,
    thread,
    seq,
    kind,
    count(*) filter (
      kind in ('launch', 'graph_launch', 'copy', 'alloc')
    ) over (partition by thread order by seq) as burst
  from call
  where loop in (select loop from call where kind = 'free')
),
returned as (
  select
    loop,
    iteration,
    arg_min(id, seq) as api_call,
    count(*) as frees
  from step
  where kind = 'free'
  group by loop, iteration, thread, burst
)
select
  r.loop,
  r.iteration,
  r.api_call,
  cast(r.frees as integer) as frees,
  list(p.idle_interval order by p.idle_interval) filter (p.idle_interval is not null) as idle_intervals,
  coalesce(sum(p."end" - p.start), 0) as before_ns
from returned r
left join idle_interval p on p.api_call = r.api_call
  and p.doing = 'segment'
  and p.category = 'idle_other'
  and p.segment_ns >= setting('cpu_phase_ns')
  and r.frees >= setting('pool_burst')
where exists (from framework_seen where framework in ('pytorch', 'cupy', 'jax'))
group by r.loop, r.iteration, r.api_call, r.frees;
