-- Where a profiled launch stands under the roofs of its GPU.
-- materialised: the report and several rules read it
--   profile: references kernel_profile
--   intensity: operations for each byte that DRAM moved (FLOP/B); null when they were not counted, as those of tensor
--    cores are not
--   ridge: the operations a byte from which on compute is the roof (FLOP/B), at the clocks measured
--   precision: fp32 or fp64, whichever does more
--   flop_share: its operations over the peak, 0 to 1
--   limit: the unit nearest to its roof: dram, l2, l1, pipe, tensor, issue, or where the sections do not divide them
--    memory, sm; latency when none is near; empty when most multiprocessors have no work
--   active_share: part of the time that an average multiprocessor had work, 0 to 1
--   busy_pct: how busy that unit is, % of its peak
--   floor_ns: what the busiest unit alone needs for the same work at its peak (ns)
--   clock_hz: the multiprocessors' clock during the launch
--   full_clock_hz: the GPU's own
--   device_name: the GPU
--   cc: its compute capability
--   stated_fp32: operations a cycle of all multiprocessors as the report states them
--   known_fp32: the same from the table above
create view kernel_roofline as
with measured as (
  select
    f.*,
    p.cc,
    p.device_name,
    k.fp32,
    k.fp64,
    coalesce(r.active_share, 1) as active
  from kernel_facts f
  join kernel_profile p on p.id = f.profile
  left join sm_peak() k on k.cc = p.cc
  left join kernel_waves r using (profile)
),
rated as (
  select
    *,
    coalesce(flop_fp64 / peak_fp64, 0) > coalesce(flop_fp32 / peak_fp32, 0) as in_double,
    greatest(flop_fp32 / peak_fp32, flop_fp64 / peak_fp64) as flop_share,
    -- These counters count cycles in which a multiprocessor had work; one without any is as far from the roof.
    active * greatest(coalesce(busiest_pipe_pct, 0), coalesce(fp64_pct, 0)) as pipe_pct,
    greatest(active * coalesce(l1_pct, 0), coalesce(l1_data_pct, 0)) as inner_pct,
    active * coalesce(tensor_pct, 0) as tensors_pct,
    active * 100 * coalesce(issue_active, 0) as issue_pct,
    -- Where no section tells of pipes or of memories, the sum that the first section gives.
    case when busiest_pipe_pct is null and issue_active is null then coalesce(sm_pct, 0) else 0 end as sms_pct,
    case when dram_pct is null and l2_pct is null and l1_pct is null then coalesce(memory_pct, 0) else 0 end
      as memories_pct
  from measured
),
compared as (
  select
    *,
    greatest(
      coalesce(dram_pct, 0),
      coalesce(l2_pct, 0),
      inner_pct,
      pipe_pct,
      tensors_pct,
      issue_pct,
      sms_pct,
      memories_pct
    ) as most_pct
  from rated
),
named as (
  select
    *,
    case when dram_pct >= setting('roof_same') * most_pct then dram_pct else most_pct end as busy_pct
  from compared
)
select
  profile,
  case
    when tensors_pct > setting('tensor_used_pct') then null
    when in_double then flop_fp64
    else flop_fp32
  end * clock_hz * duration_ns / 1e9 / nullif(dram_bytes, 0) as intensity,
  case when in_double then coalesce(peak_fp64, fp64 * sm_count) else coalesce(peak_fp32, fp32 * sm_count) end
    * clock_hz
    / dram_bytes_per_s as ridge,
  case when in_double then 'fp64' else 'fp32' end as "precision",
  flop_share,
  case
    when busy_pct < setting('roof_near_pct')
      then case when active < setting('roof_empty_share') then 'empty' else 'latency' end
    when dram_pct = busy_pct then 'dram'
    when tensors_pct = busy_pct then 'tensor'
    when pipe_pct = busy_pct then 'pipe'
    when inner_pct = busy_pct then 'l1'
    when l2_pct = busy_pct then 'l2'
    when sms_pct = busy_pct then 'sm'
    when memories_pct = busy_pct then 'memory'
    else 'issue'
  end as "limit",
  active as active_share,
  busy_pct,
  duration_ns * busy_pct / 100 as floor_ns,
  clock_hz,
  full_clock_hz,
  device_name,
  cc,
  peak_fp32 as stated_fp32,
  fp32 * sm_count as known_fp32
from named;
