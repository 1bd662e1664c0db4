-- Whether an operating system call waits for another thread or process.
create macro waits_for_others(f) as f in ('poll', 'ppoll', 'select', 'pselect', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2', 'futex',
    'pthread_cond_wait', 'pthread_cond_timedwait', 'pthread_cond_clockwait', 'pthread_join', 'pthread_timedjoin_np',
    'sem_wait', 'sem_timedwait', 'sem_clockwait');

-- Whether an operating system call receives from a socket.
create macro receives_data(f) as f in ('recv', 'recvfrom', 'recvmsg', 'recvmmsg');

-- Whether an operating system call reads from a file or a socket. A plain `read` may as well wait for another process at a pipe.
create macro reads_data(f) as receives_data(f) or f in ('readv', 'pread', 'pread64', 'preadv', 'preadv64', 'preadv2', 'preadv64v2', 'fread',
    'fread_unlocked', 'fgets', 'fgets_unlocked', 'getline', 'aio_suspend', 'aio_suspend64', 'io_getevents');

-- Whether an operating system call shows that its thread deals with files, so that its plain reads are no pipe's.
create macro handles_files(f) as f in ('open', 'open64', 'openat', 'openat64', 'fopen', 'fopen64', 'lseek', 'lseek64', 'fseek', 'fseeko', 'fseeko64',
    'stat', 'stat64', 'fstat', 'fstat64', 'lstat', 'lstat64');

-- A host segment that fetched input while a GPU was idle, and how its thread spent it.
-- materialised: the next view reads it several times
--   api_call: the call that ended it
--   loop: references loop
--   process: references process
--   thread: references thread
--   length_ns: how long it was (ns)
--   waited_ns: time in it that the thread waited for another thread or process (ns)
--   read_ns: time in it that the thread read from files or sockets (ns)
--   read_name: the function in which it read longest
--   has_workers: whether its NVTX range or the Python stack says that worker processes prepare the input
create view input_segment as
with starving as (
    select h.api_call, h.loop, h.thread, h.start, h."end" from host_segment h
    where h.fetches_input and h.api_call in (select api_call from idle_piece where category = 'idle_input')
), spent as (
    select s.api_call, s.loop, n.text, sum(least(w."end", s."end") - w.start) as ns
    from (select thread, name, start, "end" from os_call where thread in (select thread from starving)) w
    asof join starving s on w.thread = s.thread and s.start <= w.start join name n on n.id = w.name
    where w.start < s."end" group by s.api_call, s.loop, n.text
), filed as (
    select *, bool_or(handles_files(text)) over (partition by loop) as has_files from spent
), counted as (
    select api_call, sum(ns) filter (where waits_for_others(text)) as waited_ns, sum(ns) filter (where reads_data(text) or text = 'read' and has_files) as read_ns,
           arg_max(text, (ns, text)) filter (where reads_data(text) or text = 'read') as read_name
    from filed group by api_call
), marked as (  -- PyTorch's own names for a loader with workers
    select s.api_call from starving s join nvtx_range r on r.thread = s.thread and r.start < s."end" and r."end" > s.start
    where r.name in (select id from name where contains(text, '_MultiProcessingDataLoaderIter'))
    union all
    select c.api_call from call_sample c join py_sample y on y.id = c.sample
    where not c.inside and c.fetches_input and c.api_call in (select api_call from starving)
        and len(list_filter(y.frames, lambda f: f.function in ('_get_data', '_try_get_data') and is_data_loader(f.file))) > 0
)
select s.api_call, s.loop, t.process, s.thread, s."end" - s.start as length_ns, cast(coalesce(c.waited_ns, 0) as bigint) as waited_ns,
       cast(coalesce(c.read_ns, 0) as bigint) as read_ns, c.read_name, s.api_call in (select api_call from marked) as has_workers
from starving s join thread t on t.id = s.thread left join counted c on c.api_call = s.api_call;

-- A thread that reads from files or sockets beside one that waits for input. Worker processes are not looked into.
--   loop: references loop
--   thread: references thread
--   read_share: part of the loop's time that it read, or waited at a socket for what it read next, 0 to 1
--   read_name: the function in which it read longest
create view input_reader as
with waiting as (
    select loop, process, sum(ns) as ns, min(start) as start, max("end") as "end" from (
        select loop, process, start, "end", "end" - start as ns from span
        where (loop, process) in (select (loop, process) from input_segment where not has_workers and 2 * waited_ns > length_ns)
    ) group by loop, process
), did as (
    select w.loop, w.ns as total_ns, o.thread, n.text, o.start, o."end",
           waits_for_others(n.text) and lead(receives_data(n.text)) over (partition by o.thread order by o.start) as listens
    from os_call o join thread t on t.id = o.thread join waiting w on w.process = t.process and o.start >= w.start and o."end" <= w."end"
    join name n on n.id = o.name
    where o.thread not in (select thread from input_segment)
        and (n.text = 'read' or waits_for_others(n.text) or reads_data(n.text) or handles_files(n.text))
), filed as (
    select *, bool_or(handles_files(text)) over (partition by loop, thread) as has_files from did
)
select loop, thread, sum("end" - start) / any_value(total_ns) as read_share, arg_max(text, ("end" - start, text)) filter (where not listens) as read_name
from filed where listens or reads_data(text) or text = 'read' and has_files group by loop, thread;

-- What a loop that starves for input waits for. Most of the time decides.
-- materialised: three rules ask it, and planning it costs more than running it
--   loop: references loop
--   cause: own (the launching thread prepares the input itself), workers (it waits for others) or reading (for files or the network)
--   waited_share: part of the fetching time that the thread waits for another thread or process, 0 to 1
--   read_share: part of the time that it, or the thread it waits for, reads, 0 to 1
--   read_name: the function in which that thread reads longest
--   reads_itself: whether the launching thread is the one that reads
create view input_cause as
with own as (
    select loop, sum(waited_ns) / sum(length_ns) as waited_share, sum(read_ns) / sum(length_ns) as read_share, arg_max(read_name, (read_ns, read_name)) as read_name,
           2 * count(*) filter (where has_workers) > count(*) as has_workers
    from input_segment group by loop
), other as (
    select loop, max(read_share) as read_share, arg_max(read_name, (read_share, read_name)) as read_name from input_reader group by loop
)
select o.loop, case when o.read_share > 0.5 or o.waited_share > 0.5 and h.read_share > 0.5 then 'reading'
                    when o.has_workers or o.waited_share > 0.5 then 'workers' else 'own' end as cause,
       o.waited_share, greatest(o.read_share, coalesce(h.read_share, 0)) as read_share,
       case when o.read_share >= coalesce(h.read_share, 0) then o.read_name else h.read_name end as read_name,
       o.read_share >= coalesce(h.read_share, 0) as reads_itself
from own o left join other h using (loop);

-- A stretch in which a loop stood still for longer than several of its turns: inside one turn, or between two. The same loop
-- goes on after it, and the GPU had nothing to do.
--   loop: references loop
--   process: references process
--   thread: the thread that drives the loop
--   turn_no: how many analysed turns of the process came before
--   start: when it began (ns)
--   end: when it ended (ns)
--   between: whether it lies between two turns, which the loop's time does not count
--   idle_ns: idle GPU time in it, less the profiler's own work (ns)
--   turn_ns: median turn (ns)
--   path: the innermost NVTX range in the middle of it
--   os_name: the operating system call in which the thread spent most of it; null when those were not recorded
--   os_ns: how long, all such calls together (ns)
create view loop_pause as
with numbered as (
    select turn, loop, process, thread, start, "end", row_number() over (partition by loop, process order by start, turn) as turn_no,
           median("end" - start) over (partition by loop) as turn_ns,
           lead(loop) over w as next_loop, lead(thread) over w as next_thread, lead(start) over w as next_start
    from turn window w as (partition by process order by start)
), long as (
    select turn, loop, process, thread, turn_no, turn_ns, start, "end", false as between from numbered where "end" - start > 2 * turn_ns
    union all
    select null, loop, process, thread, turn_no, turn_ns, "end", next_start, true from numbered
    where next_loop = loop and next_thread = thread and next_start - "end" > 2 * turn_ns
), busy as (  -- the GPU, or the profiler
    select l.process, l.start, sum(least(b."end", l."end") - b.start) as ns
    from (
        select process, start, "end" from nearby_op where process in (select process from long)
        union all
        select p.process, v.start, v."end" from overhead v, (select distinct process from long) p
    ) b asof join long l on b.process = l.process and l.start <= b.start where b.start < l."end" group by l.process, l.start
), called as (
    select l.process, l.start, w.name, sum(least(w."end", l."end") - w.start) as ns
    from (select thread, name, start, "end" from os_call where thread in (select thread from long)) w
    asof join long l on w.thread = l.thread and l.start <= w.start where w.start < l."end" group by l.process, l.start, w.name
)
select l.loop, l.process, l.thread, l.turn_no, l.start, l."end", l.between,
       cast(greatest(0, l."end" - l.start - case when l.between then 0 else l.turn_ns end - coalesce(b.ns, 0)) as bigint) as idle_ns,
       l.turn_ns, a.path, n.text as os_name, cast(c.ns as bigint) as os_ns
from long l
left join busy b on b.process = l.process and b.start = l.start
left join (select process, start, max(ns) as ns, arg_max(name, (ns, name)) as name from called group by process, start) c
    on c.process = l.process and c.start = l.start
left join name n on n.id = c.name
asof left join annotation_at a on l.thread = a.thread and a.time <= (l.start + l."end") // 2;

-- A launch call that took more than twice as long as the loop's typical one while the GPU was idle.
--   api_call: references api_call
--   loop: references loop
--   turn: references iteration
--   duration_ns: how long it took (ns)
--   median_ns: median launch of the loop (ns)
--   idle_ns: idle GPU time in it (ns)
--   explained_ns: time in it that the thread spent in traced system calls, such as waits for a lock, or that the profiler took (ns)
create view slow_launch as
with typical as (
    select loop, median("end" - start) as ns from call where kind = 'launch' group by loop
), slow as (
    select c.id, c.loop, c.turn, c.thread, c.start, c."end", t.ns as median_ns from call c join typical t using (loop)
    where c.kind = 'launch' and c."end" - c.start > 2 * t.ns
), idle as (
    select api_call, sum("end" - start) as ns from idle_piece where doing = 'call' and api_call in (select id from slow) group by api_call
), explained as (
    select s.id, sum(least(w."end", s."end") - w.start) as ns
    from (select thread, start, "end" from os_call where thread in (select thread from slow)) w
    asof join slow s on w.thread = s.thread and s.start <= w.start where w.start < s."end" group by s.id
    union all
    select s.id, sum(least(v."end", s."end") - greatest(v.start, s.start))
    from slow s join overhead v on v.start < s."end" and v."end" > s.start group by s.id
)
select s.id as api_call, s.loop, s.turn, s."end" - s.start as duration_ns, s.median_ns, cast(i.ns as bigint) as idle_ns,
       cast(coalesce(e.ns, 0) as bigint) as explained_ns
from slow s join idle i on i.api_call = s.id
left join (select id, sum(ns) as ns from explained group by id) e on e.id = s.id;
