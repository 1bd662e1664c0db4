-- A GPU of a log of nvidia-smi, over all its readings. Parts are of the readings under load.
-- materialised: read by all rules about such logs
--   device: references device: that of the log
--   gpu: what to call it: its number, and its name where the log has it
--   readings: how many there are
--   loaded: how many of them were made under load
--   span_ns: from the first to the last; null where the log has no times (ns)
--   utilization_pct: mean part of the time in which a kernel ran, over all readings, 0 to 100
--   clock: median clock under load (MHz)
--   low_clock: tenth part of the readings under load have this clock or less (MHz)
--   high_clock: tenth part of the readings under load have this clock or more (MHz)
--   max_clock: the highest clock, as the log says, else the timeline's GPU of that name (MHz)
--   power: median power under load (W)
--   power_limit: power that it may draw (W)
--   temperature: highest under load (°C)
--   capped_share: part in which power held the clock down; null where the log does not tell
--   capped_clock: median clock of those readings (MHz)
--   cap_stated: whether the log itself says so, and not only the power that it drew
--   hot_share: part in which heat held the clock down; null where the log does not tell
--   braked_share: part in which the hardware slowed itself down for another reason; null where the log does not tell
--   set_share: part in which a clock that was set held it down; null where the log does not tell
--   free_share: part of which the log says that neither power nor heat held the clock down; null where it does not
--   used_bytes: most memory in use at any time, by whatever process (B)
--   total_bytes: memory of the GPU, as the log says, else that of the timeline's only GPU (B)
--   link_width: lanes of PCIe in use, median under load
--   max_link_width: lanes that it could use
--   narrow_share: part in which it used fewer
--   link_generation: generation of PCIe in use, median under load
--   max_link_generation: generation that it could use
--   slow_link_share: part in which it used an older one
create view smi_gpu as
with timeline as (
  select
    d.name,
    max(d.clock_hz) / 1e6 as clock,
    max(d.memory_bytes) as memory_bytes,
    count(*) over () as models
  from device d
  join input i on i.id = d.input
  where i.kind <> 'smi'
  group by d.name
),
counted as (
  select
    r.device,
    count(*) as readings,
    count(*) filter (where r.loaded) as loaded,
    max(r.time) - min(r.time) as span_ns,
    avg(r.utilization_pct) as utilization_pct,
    median(r.clock) filter (where r.loaded) as clock,
    quantile_cont(r.clock, 0.1) filter (where r.loaded) as low_clock,
    quantile_cont(r.clock, 0.9) filter (where r.loaded) as high_clock,
    max(r.max_clock) as max_clock,
    median(r.power) filter (where r.loaded) as power,
    max(r.power_limit) as power_limit,
    max(r.temperature) filter (where r.loaded) as temperature,
    avg(r.capped::double) filter (where r.loaded) as capped_share,
    median(r.clock) filter (where r.loaded and r.capped) as capped_clock,
    coalesce(bool_and(r.cap_stated) filter (where r.loaded), false) as cap_stated,
    avg(r.hot::double) filter (where r.loaded) as hot_share,
    avg(r.braked::double) filter (where r.loaded) as braked_share,
    avg(r.set_low::double) filter (where r.loaded) as set_share,
    avg((not r.capped and not r.hot)::double) filter (where r.loaded and r.cap_stated) as free_share,
    max(r.used_memory) * 1048576 as used_bytes,
    max(r.total_memory) * 1048576 as total_bytes,
    median(r.link_width) filter (where r.loaded) as link_width,
    max(r.max_link_width) as max_link_width,
    avg((r.link_width < r.max_link_width)::double) filter (where r.loaded) as narrow_share,
    median(r.link_generation) filter (where r.loaded) as link_generation,
    max(r.max_link_generation) as max_link_generation,
    avg((r.link_generation < r.max_link_generation)::double) filter (where r.loaded) as slow_link_share
  from smi_reading r
  group by r.device
)
select
  c.device,
  'GPU ' || d.ordinal || coalesce(' (' || d.name || ')', '') as gpu,
  c.readings,
  c.loaded,
  c.span_ns,
  c.utilization_pct,
  c.clock,
  c.low_clock,
  c.high_clock,
  coalesce(c.max_clock, t.clock) as max_clock,
  c.power,
  c.power_limit,
  c.temperature,
  c.capped_share,
  c.capped_clock,
  c.cap_stated,
  c.hot_share,
  c.braked_share,
  c.set_share,
  c.free_share,
  c.used_bytes,
  coalesce(c.total_bytes, t.memory_bytes) as total_bytes,
  c.link_width,
  c.max_link_width,
  c.narrow_share,
  c.link_generation,
  c.max_link_generation,
  c.slow_link_share
from counted c
join device d on d.id = c.device
left join timeline t on t.name = d.name or d.name is null and t.models = 1;
