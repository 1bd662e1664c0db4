-- How a rank of a job spends an iteration of a loop. Only where other ranks ran the loop too.
--   loop: references loop
--   process: references process
--   job: see rank_process
--   label: see rank_process
--   ranks: how many ranks ran the loop
--   name: the loop's name
--   path: its NVTX path
--   iterations: iterations analysed
--   iteration_ns: their mean length (ns)
--   compute_ns: time of an iteration in which its GPU computed (ns)
--   copy_ns: time in which it only copied (ns)
--   spare_ns: time in which it only communicated (ns)
--   idle_ns: time in which it had nothing to do (ns)
--   held_ns: part of that in which its host waited or did other work, not the time that launches take (ns)
create view rank_iteration as
with state as (
  select
    s.loop,
    s.process,
    r.job,
    r.label,
    sum(d."end" - d.start) as ns,
    sum(d."end" - d.start) filter (d.state = 'compute') as compute_ns,
    sum(d."end" - d.start) filter (d.state = 'copy') as copy_ns,
    sum(d."end" - d.start) filter (d.state = 'idle') as idle_ns,
    sum(d."end" - d.start) filter (d.state = 'communication') as spare_ns
  from rank_process r
  join steady_interval s on s.process = r.process
  join device_state d on d.steady_interval = s.steady_interval
  group by s.loop, s.process, r.job, r.label
),
iterations as (
  select
    loop,
    process,
    sum(iterations) as n
  from steady_interval
  group by loop, process
),
held as (
  select
    p.loop,
    g.process,
    sum(p."end" - p.start) as ns
  from idle_interval p
  join gap g on g.gap = p.gap
  where g.process in (select process from rank_process)
    and (
      p.category in ('idle_sync', 'idle_input', 'idle_allocation')
        or p.doing = 'segment'
        and p.segment_ns >= setting('cpu_phase_ns')
    )
  group by p.loop, g.process
),
each as (
  select
    s.loop,
    s.process,
    s.job,
    s.label,
    l.name,
    l.nvtx_path as path,
    t.n as iterations,
    s.ns / t.n as iteration_ns,
    coalesce(s.compute_ns, 0) / t.n as compute_ns,
    coalesce(s.copy_ns, 0) / t.n as copy_ns,
    coalesce(s.idle_ns, 0) / t.n as idle_ns,
    coalesce(s.spare_ns, 0) / t.n as spare_ns,
    coalesce(h.ns, 0) / t.n as held_ns
  from state s
  join iterations t on t.loop = s.loop and t.process = s.process
  join loop l on l.id = s.loop
  left join held h on h.loop = s.loop and h.process = s.process
)
select
  loop,
  process,
  job,
  label,
  count(*) over w as ranks,
  name,
  path,
  iterations,
  iteration_ns,
  compute_ns,
  copy_ns,
  spare_ns,
  idle_ns,
  held_ns
from each
window w as (partition by job, name)
qualify count(*) over w > 1;
