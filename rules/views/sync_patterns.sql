-- Whether a text (a kernel's full name, or the innermost label of an NVTX range) speaks of a norm, a dot product, a distance or a
-- test for convergence: what an iterative solver compares with its tolerance. Normalisation layers do not count.
create macro names_convergence(message) as regexp_matches(message,
    '(?i)converg|residu|tolerance|nrm2|l2_?norm|vector_?norm|norm_?l2|(^|void |::)(norm|max_?diff|max_?error|error_?norm|distance)(_?kernel)?[(<]')
    or regexp_matches(message, 'Norm(Two|One)?Ops|AbsMaxOps|^cupy_sqrt__|reduce_1Block_kernel');

-- Whether a text (a kernel's full name, or an NVTX path) tells that a model is trained: what is read back there is a metric.
create macro names_training(message) as regexp_matches(message,
    '(?i)backward|optimi[sz]er|multi_tensor_apply|adam|(^|[^a-z])sgd|nll_loss|cross_?entropy|softmax|dgrad|wgrad|(^|[^a-z])train|epoch');

-- A place in a loop where small values are read back and waited for, after a norm or a dot product at least once, with what tells
-- a solver's convergence test from other reads.
--   loop: references loop
--   path: innermost NVTX range
--   api_calls: the calls that read and waited (references api_call)
--   reads: values read here, however many calls each took
--   name: the call that held the host longest
--   bytes: size of the largest value (B)
--   idle_ns: idle GPU time that follows from the reads here (ns)
--   tested_turns: turns in which a read follows a norm, or its NVTX range speaks of convergence
--   loop_reads: values read in the whole loop
--   loop_bytes: size of the largest of those (B)
--   loop_idle_ns: idle GPU time that follows from those (ns)
--   trains: whether kernels or ranges tell that a model is trained: what is read back there is a metric
--   upload_bytes: bytes that the loop copied to the GPU (B)
create view solver_read as
with launching as (
    select id, thread, start from call where kind in ('launch', 'graph_launch')
), reading as (  -- a read-back and the wait for it follow the same launch: they are one read
    select b.loop, b.path, b.turn, l.id as launch, list(b.api_call order by b.api_call) as api_calls, arg_max(b.name, (b.duration_ns, b.name)) as name,
           max(b.duration_ns) as longest_ns, sum(b.idle_ns) as idle_ns, max(b.read_bytes) as bytes
    from blocking_call b asof join launching l on b.thread = l.thread and l.start <= b.start
    where b.read_bytes is not null group by b.loop, b.path, b.turn, l.id
), placed as (
    select r.loop, r.path, flatten(list(r.api_calls order by r.launch)) as api_calls, count(*) as reads,
           arg_max(r.name, (r.longest_ns, r.name)) as name, max(r.bytes) as bytes, sum(r.idle_ns) as idle_ns,
           count(distinct r.turn) filter (where names_convergence(w.name)
               or names_convergence(list_last(string_split(r.path, ' / ')))) as tested_turns
    from reading r left join work w on w.api_call = r.launch group by r.loop, r.path
), kind as (  -- of the loop's work: each kernel's name is looked at once
    select loop, bool_or(coalesce(names_training(name), false)) as trains, sum(bytes) as upload_bytes from (
        select w.loop, w.name, sum(o.bytes) filter (where o.copy_kind = 'host_to_device') as bytes
        from work w join nearby_op o on o.id = w.op where w.loop in (select loop from placed where tested_turns > 0) group by w.loop, w.name
    ) group by loop
)
select p.*, sum(p.reads) over (partition by p.loop) as loop_reads, max(p.bytes) over (partition by p.loop) as loop_bytes,
       sum(p.idle_ns) over (partition by p.loop) as loop_idle_ns, k.trains or coalesce(names_training(p.path), false) as trains,
       coalesce(k.upload_bytes, 0) as upload_bytes
from placed p join kind k using (loop);

-- A GPU operation that stood ready in its own stream while the legacy default stream and a blocking stream waited for one
-- another: it began only when the other's operation ended.
--   op: references gpu_op
--   loop: references loop
--   api_call: the call that started it
--   on_default: whether it ran on the legacy default stream; else that is where the other one ran
--   blocker: the operation it waited for (references gpu_op)
--   short: its kernel's base name; null for a copy
--   blocker_short: the other one's
--   duration_ns: how long it ran (ns)
--   ready_ns: how long it stood ready while the other one ran, or waited for its own turn (ns)
--   after_ns: from the other's end to its start (ns)
--   can_share: whether the two could run together: a copy and a kernel, two directions, or a kernel with fewer blocks than
--              the GPU has multiprocessors
create view default_stream_wait as
with mixed as (
    select w.loop from work w join stream s on s.id = w.stream group by w.loop
    having bool_or(s.kind = 'null') and bool_or(s.kind = 'blocking')
), ran as (
    select w.op, w.loop, w.device, w.stream, w.kind, w.short, w.start, w."end", w.duration_ns, w.api_call, s.kind = 'null' as on_default,
           o.copy_kind, o.grid < d.sm_count as leaves_room, c.start as called,
           greatest(case when c."end" > w.start then c.start else c."end" end,
                    lag(w."end", 1, 0) over (partition by w.stream order by w.start, w.op)) as ready
    from work w
    join stream s on s.id = w.stream and s.kind in ('null', 'blocking')
    join nearby_op o on o.id = w.op
    join device d on d.id = w.device
    join call c on c.id = w.api_call
    where w.loop in (select loop from mixed)
), paired as (
    select r.*, b.op as blocker, b.short as blocker_short, b."end" as b_end, b.called as b_called,
           least(b.start, b.ready) as b_ready,  -- from then on it held others back, while it was held back itself
           r.kind <> b.kind or coalesce(r.copy_kind <> b.copy_kind, false)
               or coalesce(r.leaves_room, false) or coalesce(b.leaves_room, false) as can_share
    from ran r asof join ran b on r.device = b.device and r.on_default <> b.on_default and b."end" <= r.start
)
select op, loop, api_call, on_default, blocker, short, blocker_short, duration_ns,
       cast(b_end - greatest(ready, b_ready) as bigint) as ready_ns, start - b_end as after_ns, can_share
from paired where b_called < called and b_end > ready;

-- A GPU operation that only the default stream held back, in a loop whose streams are not ordered by events.
--   op: references gpu_op
--   loop: references loop
--   api_call: the call that started it
--   short: the kernel's base name; null for copies and sets
--   blocker_short: the same of the operation it waited for
--   held_ns: how much of it could have run meanwhile (ns)
create view held_by_default_stream as
select op, loop, api_call, short, blocker_short, least(ready_ns, duration_ns) as held_ns from default_stream_wait
where can_share and after_ns <= setting('default_stream_after_ns') and ready_ns >= setting('default_stream_ready_ns')
  and loop not in (select loop from call where regexp_matches(name, 'StreamWaitEvent'));  -- these are meant to take turns

-- How much device memory the traced programs held at most.
--   device: references device
--   peak_bytes: most bytes allocated at any time (B)
--   total_bytes: the device's memory (B)
create view memory_peak as
with held as (
    select device, sum(case when op = 'allocate' then bytes else -bytes end)
               over (partition by device order by time rows unbounded preceding) as bytes
    from memory_event where kind = 'device'
)
select h.device, cast(max(h.bytes) as bigint) as peak_bytes, any_value(d.memory_bytes) as total_bytes
from held h join device d on d.id = h.device group by h.device;

-- A wait for a value that follows a selection (boolean mask, nonzero, unique): how many elements it kept.
--   api_call: references api_call
--   loop: references loop
--   path: innermost NVTX range
--   read_bytes: bytes read back (B)
--   idle_ns: idle GPU time that follows from it (ns)
create view selection_read as
with selecting as (
    select c.thread, c.start from launch l join call c on c.id = l.api_call
    where regexp_matches(l.short, 'DeviceSelect|DeviceCompact|nonzero|DevicePartition|DeviceUnique|masked_select|DeviceRunLength')
)
select b.api_call, b.loop, b.path, b.read_bytes, b.idle_ns
from blocking_call b asof join selecting s on b.thread = s.thread and s.start <= b.start
where b.start - s.start <= setting('cpu_phase_ns');
