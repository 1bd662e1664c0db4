-- A kernel that a library launched to compute each element of an array by itself: one operator or ufunc, one pass over
-- memory. Kernels that a compiler has fused already (Triton, XLA) do not count.
-- materialised: read twice by the next view and by the rule on chains; planning it costs more than running it
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   device: references device
--   stream: references stream
--   api_call: the call that started it, when traced
--   start: when it began (ns)
--   duration_ns: how long it ran (ns)
--   name: references name
--   threads: threads in its grid; arrays of one size and type give the same number
--   run: how many other kernels began before it on its stream: the same for all in an unbroken row
create view elementwise_op as
with kernel_name as (
    select id from name where id in (select distinct name from nearby_op where kind = 'kernel') and (
        regexp_matches(short, '^((vectorized|unrolled|legacy)_)?(templated_)?elementwise_kernel(_manual_unroll|_with_index|_for_multi_outputs)?$')
        or regexp_matches(short, '^cupy_\w+?__\w+$') or regexp_matches(text, '__transform::(unary|binary)_transform_f'))
), using_them as (  -- a window over all operations is only for loops that have any
    select distinct s.stream from nearby_op s where s.kind = 'kernel' and s.name in (select id from kernel_name)
), ordered as (
    select w.op, w.loop, w.turn, w.device, w.stream, w.api_call, w.start, w.duration_ns, o.name, o.grid * o.block as threads,
           sum(case when o.name in (select id from kernel_name) then 0 else 1 end) over (partition by w.stream order by w.start, w.op) as run
    from work w join nearby_op o on o.id = w.op
    where w.class = 'compute' and w.stream in (select stream from using_them)
)
select op, loop, turn, device, stream, api_call, start, duration_ns, name, threads, cast(run as bigint) as run
from ordered where name in (select id from kernel_name);

-- A kernel of an optimiser that updates one parameter at a time: element-wise, and launched where an NVTX range or the
-- Python stack says so, or in an unbroken row with an `addcdiv`, the last step of Adam and its relatives.
-- materialised: read by two rules; planning it costs more than running it
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   api_call: the call that started it, when traced
--   duration_ns: how long it ran (ns)
create view optimizer_op as
with named as (
    select r.thread, r.start, r."end" from nvtx_range r join name n on n.id = r.name
    where regexp_matches(lower(n.text), '^optimizer\.step#|(^|[^a-z])(optim(izer|iser)?|opt[ _.:-]?step)([^a-z]|$)')
        and not contains(n.text, 'zero_grad')
), sampled as (  -- the stack before a call and the one after it
    select y.thread, y.time, coalesce(len(list_filter(y.frames, lambda f: starts_with(f.function, '_single_tensor_'))) > 0, false) as updating
    from py_sample y where y.time >= (select min(start) from span) and y.thread in (select distinct thread from call)
), stretch as (
    select thread, time as start, lead(time) over w as "end" from sampled
    window w as (partition by thread order by time) qualify updating and lead(updating) over w
), told as (
    select c.id from call c asof join named r on c.thread = r.thread and r.start <= c.start where c.start < r."end"
    union
    select c.id from call c asof join stretch r on c.thread = r.thread and r.start <= c.start where c.start < r."end"
), adam as (
    select distinct e.stream, e.turn, e.run from elementwise_op e join name n on n.id = e.name where contains(n.text, 'addcdiv')
)
select e.op, e.loop, e.turn, e.api_call, e.duration_ns from elementwise_op e
where e.api_call in (select id from told) or (e.stream, e.turn, e.run) in (select stream, turn, run from adam);

-- A call that makes, destroys or asks for something that a program needs once, inside a loop.
--   api_call: references api_call
--   loop: references loop
--   turn: references iteration
--   thing: stream, event, device property, page-locked registration or FFT plan
create view repeated_setup as
with kept as (
    select text as name, case
        when regexp_matches(text, '^(cuda|cu)Stream(Create|Destroy)') then 'stream'
        when regexp_matches(text, '^(cuda|cu)Event(Create|Destroy)') then 'event'
        when regexp_matches(text, '^cudaGetDeviceProperties|^(cuda|cu)MemGetInfo') then 'device property'
        when regexp_matches(text, '^(cuda|cuMem)Host(Register|Unregister)') then 'page-locked registration' end as thing
    from api_name where kind in ('other', 'host_alloc')
), planning as (  -- plans are made in a library, between calls: only the Python stack tells
    select distinct s.thread, s.id from py_sample y asof join call s on y.thread = s.thread and y.time <= s."end"
    where y.time >= s.segment_start and contains(y.frames[1].file, 'cupy') and (
        regexp_matches(y.frames[1].function, '^(_get_cufft_plan_nd|get_fft_plan)$')  -- the next one runs the plan as well
        or y.frames[1].function = '_exec_fft' and s.start - s.segment_start >= setting('host_work_ns'))
), between as (  -- making one takes several calls: all those from one launch to the next belong together
    select c.id, c.thread, c.loop, c.turn,
           sum(case when c.kind in ('launch', 'graph_launch') then 1 else 0 end) over (partition by c.thread order by c.seq rows between unbounded preceding and 1 preceding) as launches
    from call c where c.thread in (select thread from planning)
), planned as (
    select id, loop, turn from between
    where (thread, coalesce(launches, 0)) in (select thread, coalesce(launches, 0) from between where id in (select id from planning))
)
select c.id as api_call, c.loop, c.turn, k.thing from call c join kept k on k.name = c.name
where k.thing is not null and c.id not in (select id from planned)
union all
select id, loop, turn, 'FFT plan' from planned;

-- A stretch in which a thread waited for a lock, for another thread or for Python's interpreter lock.
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   name: what it waited in
create view lock_wait as
select w.thread, w.start, w."end", n.text as name from os_call w join name n on n.id = w.name
where w.thread in (select distinct thread from call) and w."end" > (select min(start) from span) and regexp_matches(n.text,
    '^(pthread_(mutex_(lock|timedlock|clocklock)|cond_(wait|timedwait|clockwait)|rwlock_\w*lock|join)|sem_(wait|timedwait|clockwait)|futex)$')
union all
select r.thread, r.start, r."end", n.text from nvtx_range r join name n on n.id = r.name
where r.thread in (select distinct thread from call) and regexp_matches(lower(n.text), '^waiting for (the )?gil');

-- A kernel launched by a program that XLA had compiled, inside a loop.
-- materialised: its rule reads it three times; planning it costs more than running it
--   op: references gpu_op
--   loop: references loop
--   turn: references iteration
--   api_call: the call that started it
--   module: the compiled program's name
--   execution: references nvtx_range: the run of the program
--   fusible: whether XLA wrote the kernel itself; library kernels such as matrix products cannot be fused
--   duration_ns: how long it ran (ns)
create view xla_op as
with module as (
    select id, regexp_extract(text, 'hlo_module=([^,#]+)', 1) as module from name
    where starts_with(text, 'XlaModule:#') or starts_with(text, 'TSL:XlaModule:#')
), execution as (
    select r.id, r.thread, r.start, r."end", m.module from nvtx_range r join module m on m.id = r.name
)
select w.op, w.loop, w.turn, w.api_call, e.module, e.id as execution,
       regexp_matches(w.short, '^(wrapped|loop|input|fusion|transpose|concatenate)_|_fusion(_\d+)?$') as fusible, w.duration_ns
from (select id, thread, start from call where kind in ('launch', 'graph_launch') and exists (from module)) c
asof join execution e on c.thread = e.thread and e.start <= c.start
join work w on w.api_call = c.id
where c.start < e."end" and w.kind in ('kernel', 'graph');

-- A process that serves a language model, told by the kernels that only such engines have.
--   process: references process
--   kernel: one of those kernels
create view serving_process as
with telling as (
    select id, short from name
    where regexp_matches(text, '\bvllm::|\bflashinfer::|\btensorrt_llm::|\bturbomind::|paged_attention|reshape_and_cache|PagedKVCache|\bsgl_')
)
select o.process, min(n.short) as kernel from gpu_op o join telling n on n.id = o.name where o.kind = 'kernel' group by o.process;
