-- What the warps of a profiled launch waited for, as parts of the time from one instruction of a warp to its next, 0 to
-- 1. A details page names the largest reason only: the others are 0 there.
--   profile: references kernel_profile
--   load_stall: data from global, local or texture memory (long scoreboard)
--   access_stall: a place in the queue of global, local or texture accesses (LG and TEX throttle)
--   shared_stall: shared memory, special functions and the queue before them (MIO throttle, short scoreboard)
--   barrier_stall: other warps of the block at a barrier, or a memory fence (barrier, membar)
--   latency_stall: the fixed latency of the instruction before (wait)
--   pipe_stall: a busy compute pipe (math pipe throttle)
--   fetch_stall: the next instruction or a constant (no instruction, branch resolving, IMC miss)
--   gmma_stall: a group of tensor-core instructions (GMMA)
--   top_stall: the largest of these
--   busy_pct: the busiest of DRAM and the compute pipes while the multiprocessors had work, % of peak
create view kernel_stall as
with cycles as (
  select
    profile,
    warp_cycles_per_issue as total,
    coalesce(long_scoreboard, 0) as load_stall,
    coalesce(lg_throttle, 0) + coalesce(tex_throttle, 0) as access_stall,
    coalesce(mio_throttle, 0) + coalesce(short_scoreboard, 0) as shared_stall,
    coalesce(barrier, 0) + coalesce(membar, 0) as barrier_stall,
    coalesce("wait", 0) as latency_stall,
    coalesce(math_pipe_throttle, 0) as pipe_stall,
    coalesce(no_instruction, 0) + coalesce(branch_resolving, 0) + coalesce(imc_miss, 0) as fetch_stall,
    coalesce(gmma, 0) as gmma_stall,
    greatest(dram_pct, busiest_pipe_pct, tensor_pct) as unit_pct,
    sm_pct
  from kernel_facts
  where warp_cycles_per_issue > 0
)
select
  c.profile,
  c.load_stall / total as load_stall,
  c.access_stall / total as access_stall,
  c.shared_stall / total as shared_stall,
  c.barrier_stall / total as barrier_stall,
  c.latency_stall / total as latency_stall,
  c.pipe_stall / total as pipe_stall,
  c.fetch_stall / total as fetch_stall,
  c.gmma_stall / total as gmma_stall,
  greatest(
    c.load_stall,
    c.access_stall,
    c.shared_stall,
    c.barrier_stall,
    c.latency_stall,
    c.pipe_stall,
    c.fetch_stall,
    c.gmma_stall
  ) / total as top_stall,
  greatest(c.unit_pct, least(100, c.sm_pct / coalesce(r.active_share, 1))) as busy_pct
from cycles c
join kernel_waves r using (profile);
