-- A gap in which the next operation had been queued already, behind a function that the GPU's stream ran on the host.
--   gap: references gap
--   loop: references loop
--   api_call: the call that queued the host function (references api_call)
--   path: innermost NVTX range of that call
--   start: when the gap began, or the operation had been queued, whichever came later (ns)
--   idle_ns: how much of the gap was left then (ns)
create view host_function_gap as
with host_function as (
  select
    id,
    thread,
    start,
    "end"
  from call
  where queues_host_function(name)
),
-- each call with the host function that its thread had queued last
asked as (
  select
    c.id,
    c.start,
    c."end",
    last_value(f.id ignore nulls) over (w) as host_function,
    -- the host has waited since, so the function was done
    last_value(
      if(c.kind = 'sync' and not contains(c.name, 'Event'), c.seq, null) ignore nulls
    ) over (w) > last_value(if(f.id is null, null, c.seq) ignore nulls) over (w) as waited
  from call c
  left join host_function f on f.id = c.id
  where c.thread in (select thread from host_function)
  window w as (partition by c.thread order by c.seq)
),
op as (
  select
    w.op,
    c."end" as queued,
    c.host_function,
    coalesce(c.waited, false) as waited,
    lag(c.start) over (partition by w.stream order by w.start, w.op) as called_before
  from loop_gpu_op w
  join asked c on c.id = w.api_call
)
select
  g.gap,
  g.loop,
  f.id as api_call,
  p.path,
  greatest(g.start, o.queued) as start,
  g."end" - greatest(g.start, o.queued) as idle_ns
from gap g
join op o on o.op = g.next_op
join host_function f on f.id = o.host_function
left join call_place p on p.api_call = f.id
where o.queued < if(o.waited, g.start, g."end") and coalesce(o.called_before < f.start, true);
