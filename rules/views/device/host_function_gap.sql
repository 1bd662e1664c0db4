-- A gap in which the next operation had been queued already, behind a function that the GPU's stream ran on the host.
--   gap: references gap
--   loop: references loop
--   api_call: the call that queued the host function (references api_call)
--   path: innermost NVTX range of that call
--   idle_ns: how much of the gap was left when that operation had been queued (ns)
create view host_function_gap as
with host_function as (
  select
    id,
    thread,
    start,
    "end"
  from call
  where regexp_matches(name, '^(cuda|cu)(LaunchHostFunc|StreamAddCallback)')
),
-- each call with the host function that its thread had queued last
asked as (
  select
    c.id,
    c.start,
    c."end",
    last_value(f.id ignore nulls) over (partition by c.thread order by c.seq) as host_function
  from call c
  left join host_function f on f.id = c.id
  where c.thread in (select thread from host_function)
),
op as (
  select
    w.op,
    c."end" as queued,
    c.host_function,
    lag(c.start) over (partition by w.stream order by w.start, w.op) as called_before
  from loop_gpu_op w
  join asked c on c.id = w.api_call
)
select
  g.gap,
  g.loop,
  f.id as api_call,
  p.path,
  g."end" - greatest(g.start, o.queued) as idle_ns
from gap g
join op o on o.op = g.next_op
join host_function f on f.id = o.host_function
left join call_place p on p.api_call = f.id
where o.queued < g."end" and f."end" <= o.queued and coalesce(o.called_before < f.start, true);
