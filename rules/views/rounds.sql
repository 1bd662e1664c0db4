-- How the blocks of a profiled launch filled the GPU from its first to its last cycle.
--   profile: references kernel_profile
--   at_once: blocks that the GPU holds at once
--   rounds: how often its places were filled: waves, or, where all blocks fit at once, blocks for each multiprocessor
--   round_loss: part of the time that the last round leaves empty if all blocks take equally long, 0 to 1
--   active_share: part of the time that an average multiprocessor had a block, 0 to 1
--   filled_share: the same for an average place of a warp, where there are more blocks than fit at once, 0 to 1
create view kernel_rounds as
with cycles as (
    select profile, max(value) filter (where metric = 'sm__cycles_active.avg') as active, max(value) filter (where metric = 'sm__cycles_elapsed.sum') as elapsed
    from kernel_metric where metric in ('sm__cycles_active.avg', 'sm__cycles_elapsed.sum') group by profile
), launch as (
    select f.profile, f.waves, f.achieved_occupancy_pct / f.theoretical_occupancy_pct as warps_share,
           coalesce(f.sm_count * least(f.limit_registers, f.limit_shared, f.limit_warps, f.limit_blocks), round(f.grid / nullif(f.waves, 0))) as at_once,
           case when f.waves >= 1 then f.waves else f.grid / f.sm_count end as rounds,
           -- The average over the busiest one leaves out the launch itself; a details page only has the whole time.
           least(1, coalesce(1 / f.sm_imbalance, c.active * f.sm_count / c.elapsed)) as active_share
    from kernel_facts f left join cycles c using (profile)
)
select profile, at_once, rounds, 1 - rounds / ceil(rounds) as round_loss, active_share,
       case when waves >= 1 then active_share * least(1, warps_share) else active_share end as filled_share
from launch;
