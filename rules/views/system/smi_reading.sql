-- A reading of nvidia-smi: the state of one GPU at one moment. Null is what the log lacks.
--   device: references device: that of the log
--   reading: references smi_sample: its reading
--   time: when, since the first reading of the log (ns)
--   utilization_pct: part of the time before it in which a kernel ran, 0 to 100
--   clock: clock of the multiprocessors (MHz)
--   max_clock: the highest that they can have, as the log says (MHz)
--   power: power drawn (W)
--   power_limit: power that it may draw (W)
--   temperature: of the GPU (°C)
--   used_memory: memory in use, by whatever process (MiB)
--   total_memory: memory of the GPU (MiB)
--   link_width: lanes of PCIe in use
--   max_link_width: lanes that it could use
--   link_generation: generation of PCIe in use
--   max_link_generation: generation that it could use
--   capped: whether power held the clock down: as the log says, else by a power draw at the limit
--   cap_stated: whether the log itself says whether power held the clock down
--   hot: whether heat held the clock down, as the log says
--   braked: whether the hardware slowed itself down for another reason: the power supply, or one not given
--   set_low: whether a clock that was set held the clock down, as the log says
--   loaded: whether the GPU was at work for most of the time before it
create view smi_reading as
with wide as (
  select
    device,
    reading,
    any_value(time) as time,
    max(value) filter (where field = 'utilization.gpu') as utilization_pct,
    max(value) filter (where field = 'clocks.sm') as sm_mhz,
    max(value) filter (where field = 'clocks.gr') as gr_mhz,
    max(value) filter (where field = 'clocks.max.sm') as max_sm_mhz,
    max(value) filter (where field = 'clocks.max.gr') as max_gr_mhz,
    max(value) filter (where field = 'power.draw') as power,
    max(value) filter (where field = 'enforced.power.limit') as enforced_limit,
    max(value) filter (where field = 'power.limit') as power_limit,
    max(value) filter (where field = 'temperature.gpu') as temperature,
    max(value) filter (where field = 'memory.used') as used_memory,
    max(value) filter (where field = 'memory.total') as total_memory,
    max(value) filter (where field = 'pcie.link.width.current') as link_width,
    max(value) filter (where field = 'pcie.link.width.max') as max_link_width,
    max(value) filter (where field = 'pcie.link.gen.current') as link_generation,
    max(value) filter (where field = 'pcie.link.gen.max') as max_link_generation,
    max(value) filter (where field in ('clocks_event_reasons.sw_power_cap', 'violation.power')) > 0 as power_capped,
    max(value) filter (
      where field in (
        'clocks_event_reasons.sw_thermal_slowdown',
        'clocks_event_reasons.hw_thermal_slowdown',
        'violation.thermal'
      )
    ) > 0 as hot,
    max(value) filter (
      where field in ('clocks_event_reasons.hw_power_brake_slowdown', 'clocks_event_reasons.hw_slowdown')
    ) > 0 as slowed,
    max(value) filter (where field = 'clocks_event_reasons.applications_clocks_setting') > 0 as set_low
  from smi_sample
  group by device, reading
)
select
  device,
  reading,
  time,
  utilization_pct,
  coalesce(sm_mhz, gr_mhz) as clock,
  coalesce(max_sm_mhz, max_gr_mhz) as max_clock,
  power,
  coalesce(enforced_limit, power_limit) as power_limit,
  temperature,
  used_memory,
  total_memory,
  link_width,
  max_link_width,
  link_generation,
  max_link_generation,
  coalesce(power_capped, power >= setting('smi_at_limit') * coalesce(enforced_limit, power_limit)) as capped,
  power_capped is not null as cap_stated,
  hot,
  slowed and not coalesce(hot, false) as braked,
  set_low,
  coalesce(utilization_pct >= setting('smi_loaded_pct'), false) as loaded
from wide;
