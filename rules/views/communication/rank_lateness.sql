-- How late each rank of a job comes to its collectives in an iteration of a loop: how much less than the early ranks,
-- the quarter that waits most, its GPU stands still to wait for others.
--   loop: references loop
--   process: references process
--   job: see rank_process
--   label: see rank_process
--   ranks: how many ranks ran the loop
--   name: the loop's name
--   path: its NVTX path
--   iterations: iterations analysed
--   iteration_ns: their mean length (ns)
--   compute_ns: as in rank_iteration (ns)
--   copy_ns: as in rank_iteration (ns)
--   spare_ns: as in rank_iteration (ns)
--   idle_ns: as in rank_iteration (ns)
--   held_ns: as in rank_iteration (ns)
--   late_ns: how late it comes, on average over all iterations (ns)
--   late_each_ns: the same of each iteration (ns)
create view rank_lateness as
with lag_of as (
  select
    loop,
    process,
    iteration,
    sum(lag_ns) as ns
  from collective_run
  where process in (select process from rank_process)
  group by loop, process, iteration
),
summed as (
  select
    t.*,
    g.each_ns,
    g.ns / t.iterations as lag_ns
  from rank_iteration t
  join (
    select
      loop,
      process,
      list(ns) as each_ns,
      sum(ns) as ns
    from lag_of
    group by loop, process
  ) g on g.loop = t.loop
    and g.process = t.process
),
based as (
  select
    *,
    quantile_disc(lag_ns, 0.25) over (partition by job, name) as early_ns
  from summed
)
select
  * exclude (each_ns, lag_ns, early_ns),
  lag_ns - early_ns as late_ns,
  list_transform(each_ns, lambda ns: ns - early_ns) as late_each_ns
from based;
