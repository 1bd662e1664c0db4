-- A phase of a loop's iteration, with the loop's time in it: idle time counts to the phase that the host was in in the
-- middle of it, the rest to the phases that submitted the work, by how long that ran.
--   loop: references loop
--   path: the NVTX range's path; null where the phase is a line
--   file: the source file of the line that the phase is; null where it is an NVTX range
--   line: the line in it
--   function: what the line calls
--   share: its part of the loop's time, 0 to 1
--   computing_share: the part of the loop's time in which a GPU computes what the phase submitted, 0 to 1
--   seen: how often an iteration the host was met in it; a line that samples hardly ever meet submits more, or less,
--    than
--    its share says
create view loop_phase as
with worked as (
  select
    w.loop,
    c.path,
    c.file,
    c.line,
    c.function,
    w.class = 'compute' as computes,
    w.duration_ns / sum(w.duration_ns) over (partition by w.loop, w.class = 'compute') as part
  from loop_gpu_op w
  left join call_phase c on c.api_call = w.api_call
),
busy as (
  select
    loop,
    leaf = 'computing' as computes,
    sum(share) as share
  from loop_tree
  where leaf in ('computing', 'exposed_communication', 'exposed_copy')
  group by all
),
parted as (
  select
    w.loop,
    w.path,
    w.file,
    w.line,
    w.function,
    w.part * b.share as share,
    case when w.computes then w.part * b.share else 0 end as computing
  from worked w
  join busy b on b.loop = w.loop and b.computes = w.computes
  union all
  select
    i.loop,
    p.path,
    p.file,
    p.line,
    p.function,
    (i."end" - i.start) / f.total_ns,
    0
  from (
    select
      n.*,
      t.process
    from idle_interval n
    join thread t on t.id = n.thread
  ) i
  join loop_facts f on f.loop = i.loop
  asof join phase_at p on p.loop = i.loop and p.process = i.process and p.time <= (i.start + i."end") // 2
),
met as (
  select
    loop,
    path,
    file,
    line,
    function,
    count(*) as times
  from phase_at
  group by loop, path, file, line, function
)
select
  p.loop,
  p.path,
  p.file,
  p.line,
  p.function,
  sum(p.share) as share,
  sum(p.computing) as computing_share,
  coalesce(any_value(m.times / i.iterations), 0) as seen
from parted p
join (
  select
    loop,
    count(*) as iterations
  from analysed_iteration
  group by loop
) i on i.loop = p.loop
left join met m on m.loop = p.loop
  and m.path is not distinct from p.path
  and m.file is not distinct from p.file
  and m.line is not distinct from p.line
  and m.function is not distinct from p.function
where p.path is not null or p.line is not null
group by p.loop, p.path, p.file, p.line, p.function;
