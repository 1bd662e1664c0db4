-- The facts of a loop that rules gate on. One row a loop that was analysed.
-- materialised: read by most rules
--   loop: references loop
--   turns: turns analysed
--   total_ns: time of those turns, summed over the devices used (ns)
--   turn_ns: total_ns per turn (ns)
--   devices: how many GPUs it used
--   busy_share: part of total_ns in which a GPU worked, 0 to 1
--   idle_share: the rest
--   kernels: kernels and graph launches started
--   kernels_per_turn: the same per turn
--   median_kernel_ns: median duration of a kernel (ns); null without kernels
--   median_interval_ns: median time from one launch to the next on the same thread (ns)
--   launches: launch calls made
create view loop_facts as
with length as (
    select loop, sum("end" - start) as total_ns, count(distinct device) as devices,
           sum("end" - start) filter (where category in ('compute', 'exposed_communication', 'exposed_copy')) as busy_ns
    from time_piece group by loop
), turns as (
    select loop, cast(sum(turns) as integer) as turns from span group by loop
), kernels as (
    select loop, cast(count(*) as integer) as kernels, median(duration_ns) as median_kernel_ns
    from work where kind in ('kernel', 'graph') group by loop
), steps as (
    select loop, start - lag(start) over (partition by thread order by start) as interval_ns
    from call where kind in ('launch', 'graph_launch')
), intervals as (
    select loop, median(interval_ns) as median_interval_ns, cast(count(*) as integer) as launches from steps group by loop
)
select l.loop, t.turns, cast(l.total_ns as bigint) as total_ns, l.total_ns / t.turns as turn_ns, cast(l.devices as integer) as devices,
       coalesce(l.busy_ns, 0) / l.total_ns as busy_share, 1 - coalesce(l.busy_ns, 0) / l.total_ns as idle_share,
       coalesce(k.kernels, 0) as kernels, coalesce(k.kernels, 0) / t.turns as kernels_per_turn,
       k.median_kernel_ns, i.median_interval_ns, coalesce(i.launches, 0) as launches
from length l join turns t using (loop) left join kernels k using (loop) left join intervals i using (loop)
where l.total_ns > 0;

-- A GPU operation started inside a span.
-- materialised: read by every view of GPU work
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   device: references device
--   stream: references stream
--   kind: kernel, memcpy, memset or graph
--   class: compute, communication or copy
--   name: the kernel's full name
--   short: its base name
--   start: when it began (ns)
--   end: when it ended (ns)
--   duration_ns: how long it ran (ns)
--   api_call: the call that started it, when traced
create view work as
select o.id as op, s.loop, t.turn, o.device, o.stream, o.kind, op_class(o.kind, n.short) as class, n.text as name, n.short,
       o.start, o."end", o."end" - o.start as duration_ns, o.api_call
from nearby_op o
asof join span s on o.process = s.process and s.start <= o.start
asof left join turn t on o.process = t.process and t.start <= o.start
left join name n on n.id = o.name
where o.start < s."end" and o."end" > o.start;

-- A kernel or graph launch, with the idle time the GPU spent waiting for it.
--   api_call: references api_call
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   path: innermost NVTX range
--   name: the kernel's full name
--   short: its base name
--   duration_ns: the kernel's duration (ns)
--   latency_ns: from the call to the kernel's start (ns)
--   segment_ns: host time before the call (ns)
--   idle_launch_ns: idle time the launch itself explains: its host segment, its call and its latency (ns)
create view launch as
select c.id as api_call, w.op, c.loop, c.turn, p.path, w.name, w.short, w.duration_ns, w.start - c.start as latency_ns,
       c.start - c.segment_start as segment_ns, coalesce(i.ns, 0) as idle_launch_ns
from call c
join work w on w.api_call = c.id and w.kind in ('kernel', 'graph')
left join call_place p on p.api_call = c.id
left join (
    select api_call, cast(sum("end" - start) as bigint) as ns from idle_piece where category = 'idle_launch' group by api_call
) i on i.api_call = c.id;

-- How much a loop used one kernel in one launch configuration. NCCL's are left out: most of their time can be waiting.
--   loop: references loop
--   name: the kernel's full name
--   short: its base name
--   grid: number of blocks
--   block: threads a block
--   launches: how often it ran
--   total_ns: summed duration (ns)
--   median_ns: median duration (ns)
--   share: its part of the loop's time, never more than the loop's busy share
--   sm_count: multiprocessors of the device
--   cc_major: its compute capability, major
--   gpu_ops: its operations (references gpu_op)
create view kernel_use as
select w.loop, w.name, min(w.short) as short, o.grid, o.block, cast(count(*) as integer) as launches,
       cast(sum(w.duration_ns) as bigint) as total_ns, median(w.duration_ns) as median_ns,
       least(sum(w.duration_ns) / any_value(f.total_ns), any_value(f.busy_share)) as share,
       any_value(d.sm_count) as sm_count, any_value(d.cc_major) as cc_major, list(w.op order by w.op) as gpu_ops
from work w
join nearby_op o on o.id = w.op
join device d on d.id = w.device
join loop_facts f on f.loop = w.loop
where w.kind = 'kernel' and w.class = 'compute' group by w.loop, w.name, o.grid, o.block;
