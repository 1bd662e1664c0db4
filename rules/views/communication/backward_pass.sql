-- Kernels that were started by another thread than the one that drives the loop, without others between: in PyTorch a
-- backward pass, which autograd runs on a thread of its own. Only in loops that communicate.
-- materialised: read by rules about when gradients are reduced
--   loop: references loop
--   iteration: the iteration in which it began (references iteration)
--   device: references device
--   start: when its first kernel began (ns)
--   compute_ns: time of its kernels (ns)
--   before_ns: of that, before its first message (ns)
--   collectives: reductions that began in it or after it, before the next one
--   messages: of those, the ones that matter: each at least message_share() of what began with them
--   exposed_ns: time in them in which the GPU computed nothing, waits for other ranks left out (ns)
--   message_ns: time of the messages, waits left out (ns)
--   path: innermost NVTX range of most of them
--   api_calls: the calls that started them
--   after_update: whether parameters were updated between the pass before it and this one
create view backward_pass as
with kernel as (
  select
    w.loop,
    w.iteration,
    w.device,
    w.op,
    w.start,
    w.duration_ns,
    w.name,
    p.path,
    c.thread <> t.thread as aside
  from loop_gpu_op w
  join analysed_iteration t on t.iteration = w.iteration
  join analysed_api_call c on c.id = w.api_call
  left join call_place p on p.api_call = w.api_call
  where w.class = 'compute' and w.loop in (select loop from collective_run)
),
marked as (
  select
    *,
    case when aside = lag(aside) over (partition by loop, device order by start, op) then 0 else 1 end as begins
  from kernel
),
grouped as (
  select
    *,
    sum(begins) over (partition by loop, device order by start, op) as phase
  from marked
),
phase as (
  select
    loop,
    device,
    phase,
    aside,
    min(iteration) as iteration,
    min(start) as start,
    sum(duration_ns) as ns,
    bool_or(not aside and updates_parameters(name, path)) as updates
  from grouped
  group by loop, device, phase, aside
),
pass as (
  select
    *,
    coalesce(lag(updates) over (partition by loop, device order by phase), false) as after_update
  from phase
),
reduction as (
  select
    c.*,
    p.phase,
    c.duration_ns - c.wait_ns >= message_share() * sum(c.duration_ns - c.wait_ns) over (
      partition by p.loop, p.device, p.phase
    ) as matters
  from collective_run c
  asof join (select * from pass where aside) p on p.loop = c.loop and p.device = c.device and p.start <= c.start
  where c.operation in ('all_reduce', 'reduce_scatter')
),
reported as (
  select
    loop,
    device,
    phase,
    count(*) as collectives,
    count(*) filter (matters) as messages,
    min(start) filter (matters) as first_start,
    sum(exposed_ns - exposed_wait_ns) as exposed_ns,
    sum(duration_ns - wait_ns) filter (matters) as message_ns,
    mode(path order by path) as path,
    list(api_call order by start) filter (api_call is not null) as api_calls
  from reduction
  group by loop, device, phase
),
done as (
  select
    t.loop,
    t.device,
    t.phase,
    sum(g.duration_ns) as ns
  from reported t
  join grouped g on g.loop = t.loop and g.device = t.device and g.phase = t.phase and g.start < t.first_start
  group by t.loop, t.device, t.phase
)
select
  p.loop,
  p.iteration,
  p.device,
  p.start,
  cast(p.ns as bigint) as compute_ns,
  cast(coalesce(d.ns, p.ns) as bigint) as before_ns,
  coalesce(t.collectives, 0) as collectives,
  coalesce(t.messages, 0) as messages,
  cast(coalesce(t.exposed_ns, 0) as bigint) as exposed_ns,
  cast(coalesce(t.message_ns, 0) as bigint) as message_ns,
  t.path,
  t.api_calls,
  p.after_update
from pass p
left join reported t on t.loop = p.loop and t.device = p.device and t.phase = p.phase
left join done d on d.loop = p.loop and d.device = p.device and d.phase = p.phase
where p.aside;
