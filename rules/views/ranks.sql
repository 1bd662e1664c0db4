-- How far apart two ranks may see the end of one collective (ns), beside a constant distance of their clocks: its kernels end
-- within some 10 µs of each other, two runs of one program drift apart by more.
create macro rank_spread_ns() as 50000;

-- How far the clocks that two captures state may be from what their collectives say (ns): clocks of a cluster agree to far
-- less than a second, two runs one after another lie further apart.
create macro rank_clock_ns() as 1000000000;

-- Part of the communication that a message needs to say how gradients travel: a loss to print, or a counter, is smaller.
create macro message_share() as 0.1;

-- The collectives of every process, numbered so that the same one has the same numbers on every rank: NCCL needs all
-- ranks to start the collectives of a communicator in one order, and a communicator keeps to its streams.
create macro numbered_collectives() as table
with own as (
    select c.gpu_op, o.process, o.start, o."end", c.op, min(o.start) over (partition by o.process, o.stream) as opens,
           row_number() over (partition by o.process, o.stream order by o.start, o.id) as sequence
    from collective c join gpu_op o on o.id = c.gpu_op
)
select gpu_op, process, start, "end", op, sequence, dense_rank() over (partition by process order by opens) as channel from own;

-- Which processes, of one capture or of several, took part in the same collectives, by process and job. A collective ends
-- on all ranks at the same moment, so between two ranks of one job the ends of all collectives lie the same time apart;
-- between two runs, those times drift (most_spread). Clocks that both captures state must agree with that distance
-- (most_apart). Arguments in ns, and how many collectives, and which part of all, they must have in common.
create macro joined_ranks(least_shared, least_part, most_spread, most_apart) as table
with own as (
    from numbered_collectives()
), total as (
    select process, count(*) as n from own group by process
), matched as (
    select a.process as first, b.process as second, count(*) as n, median(a."end" - b."end") as offset_ns, mad(a."end" - b."end") as spread_ns
    from own a join own b on b.channel = a.channel and b.sequence = a.sequence and b.op = a.op and b.process > a.process
    group by a.process, b.process
), joined as (
    select m.first, m.second
    from matched m
    join total t on t.process = m.first join total u on u.process = m.second
    join process p on p.id = m.first join input i on i.id = p.input
    join process q on q.id = m.second join input j on j.id = q.input
    where m.n >= least_shared and m.n >= least_part * greatest(t.n, u.n) and m.spread_ns <= most_spread
        and coalesce(abs(m.offset_ns - (j.clock_offset_ns - i.clock_offset_ns)) <= most_apart, true)
)
select process, min(job) as job from (
    select first as process, first as job from joined union all select second, first from joined
) group by process;

-- A process that took part in the same collectives as others in the captures.
-- materialised: its pairs are found once
--   process: references process
--   job: the first process of the job
--   ranks: how many of its processes were captured
--   label: what the report calls it: rank and file name, or process id
create view rank_process as
select j.process, j.job, count(*) over (partition by j.job) as ranks,
       coalesce('rank ' || p.rank, 'process ' || p.pid)
           || case when count(distinct p.input) over (partition by j.job) > 1 then ' (' || i.file || ')' else '' end as label
from (from joined_ranks(setting('min_turns'), setting('period_match'), rank_spread_ns(), rank_clock_ns()) where (select count(distinct o.process) from collective c join gpu_op o on o.id = c.gpu_op) > 1) j
join process p on p.id = j.process join input i on i.id = p.input;

-- A collective that a loop ran. Its kernel runs from when this rank was ready until the last rank is done, so most of its
-- time can be waiting; how much is known only when several ranks were captured.
-- materialised: read by all communication rules
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   process: references process
--   device: references device
--   stream: references stream
--   operation: all_reduce, all_gather, reduce_scatter, broadcast, send_recv or other
--   start: when its kernel began (ns)
--   end: when it ended (ns)
--   duration_ns: how long it ran, waiting included (ns)
--   exposed_ns: part of that in which the GPU computed nothing (ns)
--   wait_ns: part of the duration before the last rank had joined; 0 when only one rank was captured (ns)
--   exposed_wait_ns: part of exposed_ns before the last rank had joined (ns)
--   late_ns: when this rank was the last to join, the part in which the others only waited for it, by the one that waited least (ns)
--   bytes: size of the message; null when unknown. Of the whole array, for all_gather and reduce_scatter of one rank's part (B)
--   bus_bytes: what each link has to move for it, whatever the algorithm; null when unknown or not a collective of all (B)
--   ranks: how many ranks take part; null when unknown
--   all_ranks: whether all of them were captured, each on a GPU of its own number, as on one machine
--   kernels_since: kernels that began on the GPU since the collective before it, of any other kind
--   api_call: the call that started it
--   path: innermost NVTX range: of the thread that started it, else of the thread that drives the loop
create view collective_run as
with own as (
    from numbered_collectives() where gpu_op in (select op from work where class = 'communication')
), ends as (
    select n.gpu_op, r.job, n."end" - n.start - min(n."end" - n.start) over w as wait_ns,
           row_number() over (w order by n."end" - n.start, n.process) = 1 as joined_last
    from numbered_collectives() n join rank_process r on r.process = n.process
    window w as (partition by r.job, n.channel, n.sequence)
), machine as (
    select r.job, count(distinct d.ordinal) as gpus
    from rank_process r join stream s on s.process = r.process join device d on d.id = s.device
    where s.id in (select stream from gpu_op) group by r.job
), counted as (
    select op, loop, turn, device, stream, class, start, "end", duration_ns, api_call,
           count(*) filter (class = 'compute') over (partition by device order by start, op) as kernels
    from work where loop in (select loop from work where class = 'communication')
), placed as (
    select w.*, w.kernels - lag(w.kernels, 1, 0) over (partition by w.device order by w.start, w.op) as kernels_since,
           n.process, n.op as operation, k.bytes, k.ranks, coalesce(m.gpus = k.ranks, false) as all_ranks, n.channel, n.sequence, e.job, coalesce(e.wait_ns, 0) as wait_ns, coalesce(e.joined_last, false) as joined_last
    from counted w join own n on n.gpu_op = w.op join collective k on k.gpu_op = w.op left join ends e on e.gpu_op = w.op
    left join machine m on m.job = e.job
), alone as (
    select p.op, sum(least(p."end", d."end") - greatest(p.start, d.start)) as exposed_ns,
           sum(greatest(0, least(p.start + p.wait_ns, d."end") - greatest(p.start, d.start))) as exposed_wait_ns
    from placed p join device_state d on d.device = p.device and d.start < p."end" and d."end" > p.start
    where d.state = 'communication' group by p.op
)
select p.op, p.loop, p.turn, p.process, p.device, p.stream, p.operation, p.start, p."end", p.duration_ns,
       cast(coalesce(a.exposed_ns, 0) as bigint) as exposed_ns, p.wait_ns, cast(coalesce(a.exposed_wait_ns, 0) as bigint) as exposed_wait_ns,
       case when p.joined_last then coalesce(min(case when not p.joined_last then coalesce(a.exposed_wait_ns, 0) end)
           over (partition by p.job, p.channel, p.sequence), 0) else 0 end as late_ns,
       p.bytes, case p.operation when 'all_reduce' then 2 * (p.ranks - 1) / p.ranks when 'all_gather' then p.ranks - 1
       when 'reduce_scatter' then p.ranks - 1 when 'broadcast' then 1 end * p.bytes as bus_bytes, p.ranks, p.all_ranks,
       p.kernels_since, p.api_call, coalesce(c.path, v.path) as path
from placed p
left join alone a on a.op = p.op
left join call_place c on c.api_call = p.api_call
left join (
    select p.op, coalesce(k.start, p.start) as time, t.thread
    from placed p join turn t on t.turn = p.turn left join nearby_call k on k.id = p.api_call
) d on d.op = p.op
asof left join annotation_at v on v.thread = d.thread and v.time <= d.time;

-- Whether a kernel, by its full name, or the NVTX range it was started in, updates parameters: an optimizer step.
create macro updates_parameters(kernel_name, path) as
    regexp_matches(kernel_name, 'multi_tensor_apply|[Ff]used_?([Aa]dam|[Ss]gd|SGD|[Ll]amb|[Oo]ptim)|[Oo]ptimizer')
    or coalesce(regexp_matches(lower(path), '(^|[^a-z])optim'), false);

-- Kernels that were started by another thread than the one that drives the loop, without others between: in PyTorch a
-- backward pass, which autograd runs on a thread of its own. Only in loops that communicate.
-- materialised: read by rules about when gradients are reduced
--   loop: references loop
--   turn: the turn in which it began (references iteration)
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
    select w.loop, w.turn, w.device, w.op, w.start, w.duration_ns, w.name, p.path, c.thread <> t.thread as aside
    from work w join turn t on t.turn = w.turn join nearby_call c on c.id = w.api_call left join call_place p on p.api_call = w.api_call
    where w.class = 'compute' and w.loop in (select loop from collective_run)
), marked as (
    select *, case when aside = lag(aside) over (partition by loop, device order by start, op) then 0 else 1 end as begins from kernel
), grouped as (
    select *, sum(begins) over (partition by loop, device order by start, op) as phase from marked
), phase as (
    select loop, device, phase, aside, min(turn) as turn, min(start) as start, sum(duration_ns) as ns,
           bool_or(not aside and updates_parameters(name, path)) as updates
    from grouped group by loop, device, phase, aside
), pass as (
    select *, coalesce(lag(updates) over (partition by loop, device order by phase), false) as after_update from phase
), reduction as (
    select c.*, p.phase, c.duration_ns - c.wait_ns >= message_share() * sum(c.duration_ns - c.wait_ns) over (partition by p.loop, p.device, p.phase) as matters
    from collective_run c asof join (select * from pass where aside) p on p.loop = c.loop and p.device = c.device and p.start <= c.start
    where c.operation in ('all_reduce', 'reduce_scatter')
), told as (
    select loop, device, phase, count(*) as collectives, count(*) filter (matters) as messages, min(start) filter (matters) as first_start,
           sum(exposed_ns - exposed_wait_ns) as exposed_ns, sum(duration_ns - wait_ns) filter (matters) as message_ns, mode(path order by path) as path,
           list(api_call order by start) filter (api_call is not null) as api_calls
    from reduction group by loop, device, phase
), done as (
    select t.loop, t.device, t.phase, sum(g.duration_ns) as ns
    from told t join grouped g on g.loop = t.loop and g.device = t.device and g.phase = t.phase and g.start < t.first_start
    group by t.loop, t.device, t.phase
)
select p.loop, p.turn, p.device, p.start, cast(p.ns as bigint) as compute_ns, cast(coalesce(d.ns, p.ns) as bigint) as before_ns,
       coalesce(t.collectives, 0) as collectives, coalesce(t.messages, 0) as messages, cast(coalesce(t.exposed_ns, 0) as bigint) as exposed_ns,
       cast(coalesce(t.message_ns, 0) as bigint) as message_ns, t.path, t.api_calls, p.after_update
from pass p
left join told t on t.loop = p.loop and t.device = p.device and t.phase = p.phase
left join done d on d.loop = p.loop and d.device = p.device and d.phase = p.phase
where p.aside;

-- How a rank of a job spends a turn of a loop, and how the other ranks spend it.
--   loop: references loop
--   process: references process
--   job: see rank_process
--   label: see rank_process
--   ranks: how many ranks ran the loop
--   name: the loop's name
--   path: its NVTX path
--   turns: turns analysed
--   turn_ns: their mean length (ns)
--   compute_ns: time of a turn in which its GPU computed (ns)
--   copy_ns: time in which it only copied (ns)
--   idle_ns: time in which it had nothing to do (ns)
--   held_ns: part of that in which its host waited or did other work, not the time that launches take (ns)
--   others_compute_ns: compute_ns of the others on average (ns)
--   others_copy_ns: copy_ns of the others (ns)
--   others_idle_ns: idle_ns of the others (ns)
--   more_compute_ns: compute_ns beyond that of the other rank that has most (ns)
--   more_copy_ns: the same of copy_ns (ns)
--   more_idle_ns: the same of idle_ns (ns)
--   more_held_ns: the same of held_ns (ns)
--   others_spare_ns: least time in which the GPU of another rank only communicated (ns)
create view rank_turn as
with state as (
    select s.loop, s.process, r.job, r.label, sum(d."end" - d.start) as ns, sum(d."end" - d.start) filter (d.state = 'compute') as compute_ns,
           sum(d."end" - d.start) filter (d.state = 'copy') as copy_ns, sum(d."end" - d.start) filter (d.state = 'idle') as idle_ns,
           sum(d."end" - d.start) filter (d.state = 'communication') as spare_ns
    from rank_process r join span s on s.process = r.process join device_state d on d.span = s.span group by s.loop, s.process, r.job, r.label
), turns as (
    select loop, process, sum(turns) as n from span group by loop, process
), held as (
    select p.loop, g.process, sum(p."end" - p.start) as ns from idle_piece p join gap g on g.gap = p.gap
    where g.process in (select process from rank_process)
        and (p.category in ('idle_sync', 'idle_input', 'idle_allocation') or p.doing = 'segment' and p.segment_ns >= setting('cpu_phase_ns'))
    group by p.loop, g.process
), each as (
    select s.loop, s.process, s.job, s.label, l.name, l.nvtx_path as path, t.n as turns, s.ns / t.n as turn_ns, coalesce(s.compute_ns, 0) / t.n as compute_ns,
           coalesce(s.copy_ns, 0) / t.n as copy_ns, coalesce(s.idle_ns, 0) / t.n as idle_ns, coalesce(s.spare_ns, 0) / t.n as spare_ns, coalesce(h.ns, 0) / t.n as held_ns
    from state s join turns t on t.loop = s.loop and t.process = s.process join loop l on l.id = s.loop
    left join held h on h.loop = s.loop and h.process = s.process
)
select a.loop, a.process, a.job, a.label, 1 + count(*) as ranks, a.name, a.path, a.turns, a.turn_ns, a.compute_ns, a.copy_ns, a.idle_ns, a.held_ns,
       avg(b.compute_ns) as others_compute_ns, avg(b.copy_ns) as others_copy_ns, avg(b.idle_ns) as others_idle_ns,
       a.compute_ns - max(b.compute_ns) as more_compute_ns, a.copy_ns - max(b.copy_ns) as more_copy_ns,
       a.idle_ns - max(b.idle_ns) as more_idle_ns, a.held_ns - max(b.held_ns) as more_held_ns, min(b.spare_ns) as others_spare_ns
from each a join each b on b.job = a.job and b.name = a.name and b.process <> a.process
group by a.loop, a.process, a.job, a.label, a.name, a.path, a.turns, a.turn_ns, a.compute_ns, a.copy_ns, a.idle_ns, a.held_ns;

-- Where a rank's GPU had nothing to do: by the NVTX range of the call that its host was heading for.
--   loop: references loop
--   process: references process
--   path: innermost NVTX range
--   api_calls: those calls
--   pieces: the parts of that time
--   idle_ns: idle time (ns)
create view rank_idle as
select p.loop, g.process, coalesce(h.path, c.path) as path, list(distinct p.api_call order by p.api_call) filter (p.api_call is not null) as api_calls,
       list(p.piece order by p.piece) as pieces, sum(p."end" - p.start) as idle_ns
from (select * from gap where process in (select process from rank_process)) g
join idle_piece p on p.gap = g.gap
left join host_segment h on h.api_call = p.api_call and p.doing = 'segment'
left join call_place c on c.api_call = p.api_call
group by p.loop, g.process, coalesce(h.path, c.path);
