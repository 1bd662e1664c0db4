-- How long a loop is after warm-up, with the iterations that are not analysed: rare pauses are counted over all of it.
--   loop: references loop
--   iterations: iterations after warm-up
--   total_ns: their time, summed over the devices used (ns); estimated, as the host times those that are not analysed
--   analysed_iterations: how many of them are analysed
--   processes: how many processes run it
--   devices: how many GPUs it used
create view loop_extent as
select
  f.loop,
  cast(count(*) as integer) as iterations,
  cast(f.total_ns * (sum(i."end" - i.start) / sum(i."end" - i.start) filter (where i.analysed)) as bigint)
    as total_ns,
  f.iterations as analysed_iterations,
  cast(count(distinct i.process) as integer) as processes,
  f.devices
from loop_facts f
join iteration i on i.loop = f.loop
where i.in_steady_state and i."end" > i.start
group by f.loop, f.total_ns, f.iterations, f.devices;
