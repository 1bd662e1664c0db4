-- What a GPU's link to the host moves in one direction, from pinned memory (B/s): PCIe 5, 4 or 3 with 16 lanes, by the
-- compute capability of the GPUs that came with it; null when that is not known.
create macro link_rate(cc_major) as case
    when cc_major >= 9 then setting('pinned_bytes_per_s') when cc_major >= 8 then 25e9 when cc_major >= 6 then 12e9 end;

-- Whether a kernel of a framework or library only copies or rearranges data. Conversions of the type do more than that.
create macro moves_data(kernel_name) as (
    regexp_matches(kernel_name, 'direct_copy_kernel_cuda|CatArrayBatchedCopy|nchwToNhwcKernel|nhwcToNchwKernel|^(wrapped|loop|input)_(copy|transpose)(_fusion)?(_\d+)?$')
    and not regexp_matches(kernel_name, 'LoadWithCast|StoreWithCast'))
    or (kernel_name like 'cupy\_copy\_\_%' escape '\'
        and string_split(kernel_name, '_')[4] = string_split(kernel_name, '_')[5]);

-- A copy or rearrangement of data within the GPU: a device-to-device copy, or a kernel that only moves data.
--   op: references gpu_op
--   loop: references loop
--   path: innermost NVTX range
--   short: the kernel's base name, or device-to-device copy
--   bytes: size, of copies (B)
--   duration_ns: how long it took (ns)
create view data_move as
select w.op, w.loop, p.path, case when w.kind = 'memcpy' then 'device-to-device copy' else w.short end as short, o.bytes, w.duration_ns
from nearby_op o
join work w on w.op = o.id
left join call_place p on p.api_call = w.api_call
where (o.kind = 'memcpy' and o.copy_kind = 'device_to_device')
    or (o.kind = 'kernel' and o.name in (select id from name where id in (select name from nearby_op) and moves_data(text)));

-- A copy between host and GPU through pinned memory, with what the link could do.
--   op: references gpu_op
--   loop: references loop
--   path: innermost NVTX range
--   direction: host_to_device or device_to_host
--   bytes: size (B)
--   duration_ns: how long it took (ns)
--   exposed_ns: part of that in which the GPU computed nothing (ns)
--   link_bytes_per_s: see the macro link_rate (B/s)
--   alone: whether no other copy to or from the host ran meanwhile, on any GPU
create view link_copy as
with host_copy as (
    select t.*, w.device, w."end",
           coalesce(max(w."end") over (order by w.start, w.op rows between unbounded preceding and 1 preceding) <= w.start, true)
               and coalesce(lead(w.start) over (order by w.start, w.op) >= w."end", true) as alone
    from transfer t join work w on w.op = t.op
    where t.direction in ('host_to_device', 'device_to_host')
)
select h.op, h.loop, h.path, h.direction, h.bytes, h.duration_ns, h.exposed_ns, link_rate(d.cc_major) as link_bytes_per_s, h.alone
from host_copy h join device d on d.id = h.device where not h.pageable;

-- A block of unified memory that moved between host and GPU.
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   direction: unified_host_to_device, unified_device_to_host …
--   bytes: size (B)
--   added_ns: part of its duration in which no earlier one was still moving (ns)
--   pause_ns: time since the last one had ended (ns); null for the first
--   kernel: the kernel that ran when it began (references gpu_op); null outside kernels
--   kernel_ns: how long that kernel ran (ns)
--   path: innermost NVTX range in which that kernel was launched
create view migration as
with moved as (
    select o.id as op, o.copy_kind as direction, o.bytes from nearby_op o where starts_with(o.copy_kind, 'unified_')
), placed as (  -- a last_value over both is linear where an asof join of two long lists is not
    select w.op, w.loop, w.turn, m.direction, m.bytes, w.start, w."end",
           max(w."end") filter (where m.op is not null) over (d rows between unbounded preceding and 1 preceding) as earlier_end,
           last_value(case when m.op is null then w.op end ignore nulls) over d as kernel,
           last_value(case when m.op is null then w."end" end ignore nulls) over d as kernel_end,
           last_value(case when m.op is null then w.api_call end ignore nulls) over d as launched,
           last_value(case when m.op is null then w.duration_ns end ignore nulls) over d as kernel_ns
    from work w left join moved m on m.op = w.op
    where exists (from moved) and (m.op is not null or w.kind = 'kernel')
    window d as (partition by w.loop, w.device order by w.start, m.op nulls first)
)
select op, loop, turn, direction, bytes, greatest(0, "end" - greatest(start, coalesce(earlier_end, start))) as added_ns,
       greatest(0, start - earlier_end) as pause_ns, case when kernel_end > start then kernel end as kernel,
       case when kernel_end > start then kernel_ns end as kernel_ns, case when kernel_end > start then l.path end as path
from placed left join call_place l on l.api_call = launched where direction is not null;

-- An upload to one GPU of as many bytes as had just been downloaded from another, by the same host thread.
--   upload: references gpu_op
--   download: references gpu_op
--   loop: references loop
--   path: innermost NVTX range of the upload
--   bytes: size (B)
--   delay_ns: from the download's end to the call that uploads (ns)
--   calls_between: CUDA calls of the thread between the two
--   lost_ns: part of both in which the GPUs computed nothing, and idle time around them (ns)
create view host_relay as
with host_copy as (
    select t.op, t.loop, t.path, t.direction, t.bytes, w.device, w."end", c.thread, c.seq, c.start as called, t.exposed_ns + t.idle_ns as lost_ns
    from transfer t join work w on w.op = t.op join call c on c.id = t.api_call
    where t.direction in ('host_to_device', 'device_to_host') and t.loop in (select loop from loop_facts where devices > 1)
), source as (
    select distinct loop, device from host_copy where direction = 'device_to_host'
), step as (  -- what came down from a GPU, and each upload to another one after it, in time order
    select loop, device, thread, bytes, "end" as time, op as download, seq, lost_ns, null as upload, null as path, null as upload_seq, null as upload_lost_ns
    from host_copy where direction = 'device_to_host'
    union all
    select h.loop, s.device, h.thread, h.bytes, h.called, null, null, null, h.op, h.path, h.seq, h.lost_ns
    from host_copy h join source s on s.loop = h.loop and s.device <> h.device where h.direction = 'host_to_device'
), paired as (
    select *, last_value(download ignore nulls) over t as last_download, last_value(seq ignore nulls) over t as last_seq,
           last_value(lost_ns ignore nulls) over t as last_lost_ns, last_value(case when upload is null then time end ignore nulls) over t as last_time
    from step window t as (partition by loop, device, thread, bytes order by time, upload nulls first)
)
select upload, last_download as download, loop, path, bytes, time - last_time as delay_ns, upload_seq - last_seq - 1 as calls_between,
       upload_lost_ns + last_lost_ns as lost_ns
from paired where upload is not null and last_download is not null;

-- A kernel of a loop on several streams that began as soon as one of another stream had ended, although it had been
-- queued before and nothing that was traced made it wait.
--   op: references gpu_op
--   before_op: the kernel it waited for (references gpu_op)
--   loop: references loop
--   name: the kernel's full name
--   duration_ns: how long it ran (ns)
--   held_ns: how long it had been ready while the other one ran (ns)
--   delay_ns: from the other one's end to its start (ns)
--   fill: blocks of the kernel it waited for, in units of the GPU's multiprocessors
--   default_stream: whether one of the two ran on the legacy default stream, which waits for the others and they for it
create view held_back as
with several as (
    select w.loop, o.process, w.device from work w join nearby_op o on o.id = w.op
    where w.kind = 'kernel' and w.class = 'compute' group by w.loop, o.process, w.device having count(distinct w.stream) > 1
), asked as (
    select id, start, "end", max(case when name like '%StreamWaitEvent%' then start end) over (partition by thread order by seq) as waited
    from call where loop in (select loop from several)
), op as (
    select w.op, w.loop, w.device, o.process, w.stream, o.grid, w.kind, w.class, w.name, w.start, w."end", w.duration_ns, c.waited,
           c."end" as queued, lag(w."end") over s as stream_free, lag(c.start) over s as called_before
    from several v join work w on w.loop = v.loop and w.device = v.device
    join nearby_op o on o.id = w.op and o.process = v.process
    join asked c on c.id = w.api_call
    window s as (partition by w.stream order by w.start, w.op)
), paired as (
    select *, lag(op) over d as before_op, lag(stream) over d as before_stream, lag(start) over d as before_start, lag("end") over d as before_end,
           lag(grid) over d as before_grid
    from op where kind = 'kernel' and class = 'compute'
    window d as (partition by loop, process, device order by start, op)
), ready as (
    select *, greatest(queued, coalesce(stream_free, 0), before_start) as ready from paired
    where stream <> before_stream and before_end <= start and greatest(queued, coalesce(stream_free, 0)) < before_end
        and coalesce(waited < called_before, waited is null)
)
select r.op, r.before_op, r.loop, r.name, r.duration_ns, r.before_end - r.ready as held_ns, r.start - r.before_end as delay_ns,
       r.before_grid / d.sm_count as fill,
       coalesce('null' in (s.kind, b.kind) and 'non_blocking' not in (s.kind, b.kind), false) as default_stream
from ready r join device d on d.id = r.device join stream s on s.id = r.stream join stream b on b.id = r.before_stream;

-- A kernel of a loop in which copies or collectives run behind kernels, with how much of them ran beside it.
--   op: references gpu_op
--   loop: references loop
--   name: the kernel's full name
--   short: its base name
--   grid: blocks
--   block: threads a block
--   duration_ns: how long it ran (ns)
--   copy_ns: time of copies to, from or between GPUs while it ran (ns)
--   communication_ns: time of collectives while it ran (ns)
create view kernel_company as
with company as (
    select w.loop, w.device, w.start, w."end", w.class from transfer t join work w on w.op = t.op
    where t.exposed_ns < t.duration_ns and t.direction in ('host_to_device', 'device_to_host', 'peer_to_peer')
    union all
    select loop, device, start, "end", class from work where class = 'communication'
), kernel as (
    select w.op, w.loop, w.device, w.name, w.short, w.start, w."end", w.duration_ns,
           coalesce(max(w."end") over (partition by w.device order by w.start, w.op rows between unbounded preceding and 1 preceding) > w.start, false)
               or coalesce(lead(w.start) over (partition by w.device order by w.start, w.op) < w."end", false) as among_kernels
    from work w where w.kind = 'kernel' and w.class = 'compute' and w.loop in (select loop from company)
), beside as (
    select k.op, sum(least(k."end", c."end") - greatest(k.start, c.start)) filter (where c.class = 'copy') as copy_ns,
           sum(least(k."end", c."end") - greatest(k.start, c.start)) filter (where c.class = 'communication') as communication_ns
    from kernel k join company c on c.device = k.device and c.start < k."end" and c."end" > k.start group by k.op
)
select k.op, k.loop, k.name, k.short, o.grid, o.block, k.duration_ns, coalesce(b.copy_ns, 0) as copy_ns,
       coalesce(b.communication_ns, 0) as communication_ns
from kernel k join nearby_op o on o.id = k.op left join beside b on b.op = k.op
where not k.among_kernels;

-- A gap in which the next operation had been queued already, behind a function that the GPU's stream ran on the host.
--   gap: references gap
--   loop: references loop
--   api_call: the call that queued the host function (references api_call)
--   path: innermost NVTX range of that call
--   idle_ns: length of the gap (ns)
create view host_function_gap as
with host_function as (
    select id, thread, start, "end" from call where regexp_matches(name, '^(cuda|cu)(LaunchHostFunc|StreamAddCallback)')
), asked as (  -- each call with the host function that its thread had queued last
    select c.id, c.start, c."end", last_value(f.id ignore nulls) over (partition by c.thread order by c.seq) as host_function
    from call c left join host_function f on f.id = c.id where c.thread in (select thread from host_function)
), op as (
    select w.op, c."end" as queued, c.host_function, lag(c.start) over (partition by w.stream order by w.start, w.op) as called_before
    from work w join asked c on c.id = w.api_call
)
select g.gap, g.loop, f.id as api_call, p.path, g."end" - g.start as idle_ns
from gap g
join op o on o.op = g.next_op
join host_function f on f.id = o.host_function
left join call_place p on p.api_call = f.id
where o.queued <= g.start and f."end" <= g.start and coalesce(o.called_before < f.start, true);
