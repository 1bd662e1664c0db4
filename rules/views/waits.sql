-- A call that held the host until the GPU had done something, and what the GPU lost by it.
-- materialised: read by all synchronisation rules and suppressors
--   api_call: references api_call
--   loop: references loop
--   turn: references iteration
--   thread: references thread
--   path: innermost NVTX range
--   name: the function
--   kind: sync, copy, free, alloc or host_alloc
--   start: when it began (ns)
--   duration_ns: how long it took (ns): not its cost
--   idle_ns: idle GPU time that follows from it: while it slept on, and until the host had caught up (ns)
--   busy_share: part of its duration in which its device worked, 0 to 1
--   read_bytes: bytes read back that the host then looks at; null when it reads nothing
--   pageable: whether that copy used pageable host memory
--   sends: whether it follows at once after a copy to the GPU: so frameworks wait for one that nobody asked to be asynchronous
create view blocking_call as
with caused as (
    select cause_call as api_call, sum("end" - start) as ns from idle_piece
    where cause_call is not null  -- what lies inside another call that held the host belongs to that call
        and not (doing = 'call' and api_call in (select id from holding_call)) group by cause_call
), inside as (
    select api_call, sum("end" - start) as ns from idle_piece
    where doing = 'call' and call_kind in ('sync', 'copy', 'free', 'alloc', 'host_alloc') and cause_call is distinct from api_call
    group by api_call
), copied as (
    select api_call, min(copy_kind) as copy_kind, sum(bytes) as bytes,
           bool_or(src_kind = 'pageable' or dst_kind = 'pageable') as pageable
    from nearby_op where kind = 'memcpy' and api_call is not null group by api_call
), copied_before as (  -- an asynchronous read-back followed at once by a wait: how frameworks fetch a scalar
    select c.id as api_call, p.bytes, p.pageable, p.copy_kind
    from call c join call b on b.thread = c.thread and b.seq = c.seq - 1 join copied p on p.api_call = b.id
    where c.kind = 'sync' and p.copy_kind in ('device_to_host', 'host_to_device') and c.start - b."end" <= setting('host_work_ns')
)
select c.id as api_call, c.loop, c.turn, c.thread, l.path, c.name, c.kind, c.start, c."end" - c.start as duration_ns,
       cast(coalesce(g.ns, 0) + coalesce(i.ns, 0) as bigint) as idle_ns,
       1 - least(1, coalesce(i.ns, 0) / greatest(c."end" - c.start, 1)) as busy_share,
       case when c.kind = 'sync' and r.copy_kind = 'device_to_host' then r.bytes when m.copy_kind = 'device_to_host' then m.bytes end as read_bytes,
       coalesce(r.pageable, m.pageable, false) as pageable, coalesce(c.kind = 'sync' and r.copy_kind = 'host_to_device', false) as sends
from call c
left join caused g on g.api_call = c.id
left join inside i on i.api_call = c.id
left join copied m on m.api_call = c.id
left join copied_before r on r.api_call = c.id
left join call_place l on l.api_call = c.id
where c.id in (select id from holding_call);

-- A copy that a loop made, with the time nothing else hid it.
-- materialised: read by all transfer rules
--   op: references gpu_op
--   api_call: references api_call
--   loop: references loop
--   turn: references iteration
--   path: innermost NVTX range
--   direction: host_to_device, device_to_host, device_to_device, peer_to_peer …
--   bytes: size (B)
--   pageable: whether host memory that is not pinned took part
--   start: when the copy began on the GPU (ns)
--   duration_ns: how long the copy took on the GPU (ns)
--   call_ns: how long the host was in the call (ns)
--   exposed_ns: part of duration_ns in which the GPU computed nothing (ns)
--   blocking: whether the host stayed in the call until the copy was done
--   idle_ns: idle GPU time around the call: staging, returning, starting the next work (ns)
create view transfer as
with copying as (
    select w.op, w.api_call, w.loop, w.turn, w.device, w.start, w."end", w.duration_ns from work w where w.kind = 'memcpy'
), exposed as (
    select c.op, sum(least(c."end", d."end") - greatest(c.start, d.start)) as ns
    from copying c join device_state d on d.device = c.device and d.start < c."end" and d."end" > c.start
    where d.state = 'copy' group by c.op
), around as (
    select api_call, sum(ns) as ns from (
        select api_call, "end" - start as ns from idle_piece where call_kind = 'copy' and doing <> 'segment'
            and cause_call is distinct from api_call
        union all
        select cause_call, "end" - start from idle_piece
        where cause_kind = 'copy' and not (call_kind is not distinct from 'copy' and doing <> 'segment' and api_call <> cause_call)
    ) group by api_call
), shared as (
    select api_call, count(*) as copies from copying group by api_call
)
select c.op, c.api_call, c.loop, c.turn, p.path, o.copy_kind as direction, o.bytes,
       coalesce(o.src_kind = 'pageable' or o.dst_kind = 'pageable', false) as pageable, c.start, c.duration_ns,
       coalesce(a."end" - a.start, 0) as call_ns, cast(coalesce(e.ns, 0) as bigint) as exposed_ns,
       coalesce(a."end" >= c."end", false) as blocking, cast(coalesce(i.ns, 0) / s.copies as bigint) as idle_ns
from copying c
join nearby_op o on o.id = c.op
left join exposed e on e.op = c.op
left join call a on a.id = c.api_call
left join call_place p on p.api_call = c.api_call
left join around i on i.api_call = c.api_call
left join shared s on s.api_call is not distinct from c.api_call;

-- A device allocation or free that a loop made.
--   api_call: references api_call
--   loop: references loop
--   turn: references iteration
--   thread: references thread
--   path: innermost NVTX range
--   name: the function
--   kind: alloc, free or host_alloc
--   duration_ns: how long it took (ns)
--   idle_ns: idle GPU time: in it, and after a free had drained the queue (ns)
create view allocation as
select c.id as api_call, c.loop, c.turn, c.thread, p.path, c.name, c.kind, c."end" - c.start as duration_ns,
       cast(coalesce(i.ns, 0) as bigint) as idle_ns
from call c
left join call_place p on p.api_call = c.id
left join (
    select api_call, sum(ns) as ns from (
        select api_call, "end" - start as ns from idle_piece
        where doing = 'call' and call_kind in ('alloc', 'free', 'host_alloc') and cause_call is distinct from api_call
        union all
        select cause_call, "end" - start from idle_piece
        where cause_kind in ('alloc', 'free', 'host_alloc')
            and not (doing = 'call' and coalesce(call_kind in ('alloc', 'free', 'host_alloc'), false))
    ) group by api_call
) i on i.api_call = c.id
where c.kind in ('alloc', 'free', 'host_alloc');

-- An NVTX range inside a loop that exists to compute a value and read it back: few launches for each read.
-- materialised: prices of read-backs look it up
--   loop: references loop
--   path: the range
--   api_call: a call made in it
create view read_block as
with counted as (
    select c.loop, p.path, count(*) filter (where c.kind in ('launch', 'graph_launch')) as launches,
           count(distinct b.api_call) filter (where b.read_bytes is not null) as reads
    from call c join call_place p on p.api_call = c.id left join blocking_call b on b.api_call = c.id
    where p.path is not null group by c.loop, p.path
)
select n.loop, n.path, c.id as api_call
from counted n join loop l on l.id = n.loop
join call_place p on p.path = n.path join call c on c.id = p.api_call and c.loop = n.loop
where n.reads > 0 and n.launches <= setting('read_block_calls') * n.reads and n.path is distinct from l.nvtx_path;
