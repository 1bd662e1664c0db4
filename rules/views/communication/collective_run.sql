-- A collective that a loop ran. Its kernel runs from when this rank was ready until the last rank is done, so most of
-- its time can be waiting; how much is known only when several ranks were captured.
-- materialised: read by all communication rules
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   process: references process
--   device: references device
--   stream: references stream
--   operation: all_reduce, all_gather, reduce_scatter, broadcast, send_recv or other
--   label: what a sentence calls it: the operation; of a kernel that NCCL calls SendRecv (as older versions call any)
--    the operation of PyTorch that it is for, where that is recorded (nccl:all_to_all)
--   start: when its kernel began (ns)
--   end: when it ended (ns)
--   duration_ns: how long it ran, waiting included (ns)
--   exposed_ns: part of that in which the GPU computed nothing (ns)
--   wait_ns: part of the duration before the last rank had joined; 0 when only one rank was captured (ns)
--   exposed_wait_ns: part of exposed_ns before the last rank had joined (ns)
--   lag_ns: how much less it waited with an idle GPU than the ranks that wait most, the quarter of them at the top;
--    negative for these (ns)
--   bytes: size of the message; null when unknown. Of the whole array, for all_gather and reduce_scatter of one
--    rank's part (B)
--   bus_bytes: what each link has to move for it, whatever the algorithm; null when unknown or not a collective of
--    all (B)
--   ranks: how many ranks take part; null when unknown
--   all_ranks: whether all of them were captured, each on a GPU of its own number, as on one machine
--   kernels_since: kernels that began on the GPU since the collective before it, of any other kind
--   api_call: the call that started it
--   path: innermost NVTX range: of the thread that started it, else of the thread that drives the loop
create view collective_run as
with own as (
  from numbered_collectives() where gpu_op in (select op from loop_gpu_op where class = 'communication')
),
ends as (
  select
    n.gpu_op,
    r.job,
    n."end" - n.start - min(n."end" - n.start) over w as wait_ns
  from numbered_collectives() n
  join rank_process r on r.process = n.process
  window w as (partition by r.job, n.channel, n.sequence)
),
machine as (
  select
    r.job,
    count(distinct d.ordinal) as gpus
  from rank_process r
  join stream s on s.process = r.process
  join device d on d.id = s.device
  where s.id in (select stream from gpu_op)
  group by r.job
),
counted as (
  select
    op,
    loop,
    iteration,
    device,
    stream,
    class,
    start,
    "end",
    duration_ns,
    api_call,
    count(case when class = 'compute' then 1 end) over (partition by device order by start, op) as kernels
  from loop_gpu_op
  where loop in (select loop from loop_gpu_op where class = 'communication')
),
placed as (
  select
    w.*,
    w.kernels - lag(w.kernels, 1, 0) over (partition by w.device order by w.start, w.op) as kernels_since,
    n.process,
    n.op as operation,
    k.bytes,
    k.ranks,
    coalesce(m.gpus = k.ranks, false) as all_ranks,
    n.channel,
    n.sequence,
    e.job,
    coalesce(e.wait_ns, 0) as wait_ns
  from counted w
  join own n on n.gpu_op = w.op
  join collective k on k.gpu_op = w.op
  left join ends e on e.gpu_op = w.op
  left join machine m on m.job = e.job
),
alone as (
  select
    p.op,
    sum(least(p."end", d."end") - greatest(p.start, d.start)) as exposed_ns,
    sum(greatest(0, least(p.start + p.wait_ns, d."end") - greatest(p.start, d.start))) as exposed_wait_ns
  from placed p
  join device_state d on d.device = p.device and d.start < p."end" and d."end" > p.start
  where d.state = 'communication'
  group by p.op
)
select
  p.op,
  p.loop,
  p.iteration,
  p.process,
  p.device,
  p.stream,
  p.operation,
  coalesce(case when p.operation = 'send_recv' then torch_exchange(c.path) end, p.operation) as label,
  p.start,
  p."end",
  p.duration_ns,
  cast(coalesce(a.exposed_ns, 0) as bigint) as exposed_ns,
  p.wait_ns,
  cast(coalesce(a.exposed_wait_ns, 0) as bigint) as exposed_wait_ns,
  case
    when p.job is null then 0
    else cast(
      quantile_disc(coalesce(a.exposed_wait_ns, 0), 0.75) over (partition by p.job, p.channel, p.sequence)
        - coalesce(a.exposed_wait_ns, 0) as bigint
    )
  end as lag_ns,
  p.bytes,
  case p.operation
    when 'all_reduce' then 2 * (p.ranks - 1) / p.ranks
    when 'all_gather' then p.ranks - 1
    when 'reduce_scatter' then p.ranks - 1
    when 'broadcast' then 1
  end * p.bytes as bus_bytes,
  p.ranks,
  p.all_ranks,
  p.kernels_since,
  p.api_call,
  coalesce(c.path, v.path) as path
from placed p
left join alone a on a.op = p.op
left join call_place c on c.api_call = p.api_call
left join (
  select
    p.op,
    coalesce(k.start, p.start) as time,
    t.thread
  from placed p
  join analysed_iteration t on t.iteration = p.iteration
  left join analysed_api_call k on k.id = p.api_call
) d on d.op = p.op
asof left join annotation_at v on v.thread = d.thread and v.time <= d.time;
