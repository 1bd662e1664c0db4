-- How the blocks of a profiled launch filled the GPU from its first to its last cycle.
--   profile: references kernel_profile
--   blocks_per_wave: blocks that the GPU holds at once
--   rounds: how often its places were filled: waves, or, where all blocks fit at once, blocks for each multiprocessor
--   round_loss: part of the time that the last wave leaves empty if all blocks take equally long, 0 to 1
--   active_share: part of the time that an average multiprocessor had a block, 0 to 1
--   cycles_per_block: cycles from the start of one block to that of the next, of the whole GPU
--   starts: whether it is the start of blocks that sets the pace: they start as fast as they can, and most places for
--    warps are empty all the same
--   filled_share: the same for an average place of a warp, where there are more blocks than fit at once, 0 to 1
create view kernel_waves as
with cycles as (
  select
    profile,
    max(value) filter (where metric = 'sm__cycles_active.avg') as active,
    max(value) filter (where metric = 'sm__cycles_elapsed.sum') as elapsed
  from kernel_metric
  where metric in ('sm__cycles_active.avg', 'sm__cycles_elapsed.sum')
  group by profile
),
launch as (
  select
    f.profile,
    f.waves,
    f.achieved_occupancy_pct / f.theoretical_occupancy_pct as warps_share,
    coalesce(
      f.sm_count * least(f.limit_registers, f.limit_shared, f.limit_warps, f.limit_blocks),
      round(f.grid / nullif(f.waves, 0))
    ) as blocks_per_wave,
    case when f.waves >= 1 then f.waves else f.grid / f.sm_count end as rounds,
    f.duration_ns * f.clock_hz / 1e9 / nullif(f.grid, 0) as cycles_per_block,
    -- The average over the busiest one leaves out the launch itself; a details page only has the whole time.
    least(1, coalesce(1 / f.sm_imbalance, c.active * f.sm_count / c.elapsed)) as active_share
  from kernel_facts f
  left join cycles c using (profile)
)
select
  profile,
  blocks_per_wave,
  rounds,
  1 - rounds / ceil(rounds) as round_loss,
  active_share,
  cycles_per_block,
  waves >= setting('start_rounds')
    and warps_share <= setting('start_filled')
    and cycles_per_block <= setting('start_cycles') as starts,
  case when waves >= 1 then active_share * least(1, warps_share) else active_share end as filled_share
from launch;
