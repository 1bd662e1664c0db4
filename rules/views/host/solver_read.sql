-- A place in a loop where small values are read back and waited for, after a norm or a dot product at least once, with
-- what tells a solver's convergence test from other reads.
--   loop: references loop
--   path: innermost NVTX range
--   api_calls: the calls that read and waited (references api_call)
--   reads: values read here, however many calls each took
--   name: the call that held the host longest
--   bytes: size of the largest value (B)
--   idle_ns: idle GPU time that follows from the reads here (ns)
--   tested_iterations: iterations in which a read follows a norm, or its NVTX range speaks of convergence
--   loop_reads: values read in the whole loop
--   loop_bytes: size of the largest of those (B)
--   loop_idle_ns: idle GPU time that follows from those (ns)
--   trains: whether kernels or ranges tell that a model is trained: what is read back there is a metric
--   upload_bytes: bytes that the loop copied to the GPU (B)
create view solver_read as
with launching as (
  select
    id,
    thread,
    start
  from call
  where kind in ('launch', 'graph_launch')
),
-- a read-back and the wait for it follow the same launch: they are one read
reading as (
  select
    b.loop,
    b.path,
    b.iteration,
    l.id as launch,
    list(b.api_call order by b.api_call) as api_calls,
    arg_max(b.name, (b.duration_ns, b.name)) as name,
    max(b.duration_ns) as longest_ns,
    sum(b.idle_ns) as idle_ns,
    max(b.read_bytes) as bytes
  from blocking_call b
  asof join launching l on b.thread = l.thread and l.start <= b.start
  where b.read_bytes is not null
  group by b.loop, b.path, b.iteration, l.id
),
placed as (
  select
    r.loop,
    r.path,
    flatten(list(r.api_calls order by r.launch)) as api_calls,
    count(*) as reads,
    arg_max(r.name, (r.longest_ns, r.name)) as name,
    max(r.bytes) as bytes,
    sum(r.idle_ns) as idle_ns,
    count(distinct r.iteration) filter (
      where names_convergence(w.name) or names_convergence(list_last(string_split(r.path, ' / ')))
    ) as tested_iterations
  from reading r
  left join loop_gpu_op w on w.api_call = r.launch
  group by r.loop, r.path
),
-- of the loop's work: each kernel's name is looked at once
kind as (
  select
    loop,
    bool_or(coalesce(names_training(name), false)) as trains,
    sum(bytes) as upload_bytes
  from (
    select
      w.loop,
      w.name,
      sum(o.bytes) filter (where o.copy_kind = 'host_to_device') as bytes
    from loop_gpu_op w
    join analysed_gpu_op o on o.id = w.op
    where w.loop in (select loop from placed where tested_iterations > 0)
    group by w.loop, w.name
  )
  group by loop
)
select
  p.*,
  sum(p.reads) over (partition by p.loop) as loop_reads,
  max(p.bytes) over (partition by p.loop) as loop_bytes,
  sum(p.idle_ns) over (partition by p.loop) as loop_idle_ns,
  k.trains or coalesce(names_training(p.path), false) as trains,
  coalesce(k.upload_bytes, 0) as upload_bytes
from placed p
join kind k using (loop);
