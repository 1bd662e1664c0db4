-- What the warps of a profiled launch waited for, as parts of the time from one instruction of a warp to its next, 0 to 1.
-- A details page names the largest reason only: the others are 0 there.
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
    select profile, warp_cycles_per_issue as total, coalesce(long_scoreboard, 0) as load_stall, coalesce(lg_throttle, 0) + coalesce(tex_throttle, 0) as access_stall,
           coalesce(mio_throttle, 0) + coalesce(short_scoreboard, 0) as shared_stall, coalesce(barrier, 0) + coalesce(membar, 0) as barrier_stall,
           coalesce("wait", 0) as latency_stall, coalesce(math_pipe_throttle, 0) as pipe_stall,
           coalesce(no_instruction, 0) + coalesce(branch_resolving, 0) + coalesce(imc_miss, 0) as fetch_stall, coalesce(gmma, 0) as gmma_stall,
           greatest(dram_pct, busiest_pipe_pct, tensor_pct) as unit_pct, sm_pct
    from kernel_facts where warp_cycles_per_issue > 0
)
select c.profile, c.load_stall / total as load_stall, c.access_stall / total as access_stall, c.shared_stall / total as shared_stall,
       c.barrier_stall / total as barrier_stall, c.latency_stall / total as latency_stall, c.pipe_stall / total as pipe_stall,
       c.fetch_stall / total as fetch_stall, c.gmma_stall / total as gmma_stall,
       greatest(c.load_stall, c.access_stall, c.shared_stall, c.barrier_stall, c.latency_stall, c.pipe_stall, c.fetch_stall, c.gmma_stall) / total as top_stall,
       greatest(c.unit_pct, least(100, c.sm_pct / coalesce(r.active_share, 1))) as busy_pct
from cycles c join kernel_rounds r using (profile);

-- What each kind of wait is, and what a programmer can do about it. Stalls of a profiled launch, longest first.
--   profile: references kernel_profile
--   stall: Nsight Compute's name for it
--   share: part of the cycles from one instruction of a warp to its next, 0 to 1
--   means: what the warp waits for
--   cure: what shortens it
create view kernel_wait as
with waits as (
    select profile, warp_cycles_per_issue, unnest([
        {'stall': 'long scoreboard', 'cycles': long_scoreboard, 'means': 'data from global, local or texture memory', 'cure': 'read neighbouring addresses, load more before the first use, keep data in shared memory'},
        {'stall': 'short scoreboard', 'cycles': short_scoreboard, 'means': 'data from shared memory or a special-function result', 'cure': 'avoid bank conflicts, exchange between threads by warp shuffles'},
        {'stall': 'MIO throttle', 'cycles': mio_throttle, 'means': 'a place in the queue to shared memory and special functions', 'cure': 'fewer and wider shared-memory accesses'},
        {'stall': 'LG throttle', 'cycles': lg_throttle, 'means': 'a place in the queue to global and local memory', 'cure': 'fewer and wider accesses, such as float4'},
        {'stall': 'tex throttle', 'cycles': tex_throttle, 'means': 'a place in the texture queue', 'cure': 'fewer texture fetches, or ordinary loads'},
        {'stall': 'barrier', 'cycles': barrier, 'means': 'the other warps of its block at __syncthreads', 'cure': 'smaller blocks, equal work for each warp, fewer barriers'},
        {'stall': 'membar', 'cycles': membar, 'means': 'a memory fence', 'cure': 'fewer fences, or one of narrower scope'},
        {'stall': 'wait', 'cycles': "wait", 'means': 'the fixed latency of the instruction before', 'cure': 'independent instructions in between: work on several elements in each thread'},
        {'stall': 'math pipe throttle', 'cycles': math_pipe_throttle, 'means': 'a busy compute pipe', 'cure': 'fewer or cheaper instructions of that kind'},
        {'stall': 'no instruction', 'cycles': no_instruction, 'means': 'the next instruction to be fetched', 'cure': 'less unrolling, shorter code in the hot loop'},
        {'stall': 'branch resolving', 'cycles': branch_resolving, 'means': 'the target of a branch', 'cure': 'fewer branches'},
        {'stall': 'IMC miss', 'cycles': imc_miss, 'means': 'a constant that is not in its cache', 'cure': 'the same constant for all threads of a warp'},
        {'stall': 'GMMA', 'cycles': gmma, 'means': 'a group of tensor-core instructions', 'cure': 'more stages in the pipeline of tiles'}]) as w
    from kernel_facts where warp_cycles_per_issue > 0
)
select profile, w.stall, least(1, w.cycles / warp_cycles_per_issue) as share, w.means, w.cure from waits where w.cycles > 0;
