-- A kernel launch measured by Nsight Compute, its metrics by meaning. Percentages are 0 to 100, shares 0 to 1.
-- materialised: every kernel rule reads it
--   profile: references kernel_profile
--   name: the kernel's full name
--   short: its base name
--   grid: blocks
--   block: threads a block
--   duration_ns: how long it ran (ns)
--   run_share: its part of the time of all profiled launches, 0 to 1
--   sm_count: multiprocessors
--   sm_pct: how busy the busiest compute pipe was, % of peak
--   memory_pct: how busy the busiest memory unit was, % of peak
--   dram_pct: DRAM bandwidth used, % of peak
--   l2_pct: L2 throughput, % of peak
--   l1_pct: L1 throughput, % of peak
--   l1_data_pct: L1 data stage (shared memory and L1 hits), % of peak
--   theoretical_occupancy_pct: warps that fit, % of the SM's limit
--   achieved_occupancy_pct: warps that were resident, % of the SM's limit
--   registers: registers a thread
--   limit_registers: blocks an SM holds, by registers
--   limit_shared: blocks an SM holds, by shared memory
--   limit_warps: blocks an SM holds, by warps
--   limit_blocks: blocks an SM holds, by the hardware's limit
--   shared_per_block: shared memory a block uses (B)
--   waves: grid in units of what the GPU holds at once
--   issue_active: part of cycles in which a scheduler issued, 0 to 1
--   warp_cycles_per_issue: cycles from one instruction of a warp to its next
--   long_scoreboard: of those, cycles waiting for global, local or texture memory
--   short_scoreboard: of those, cycles waiting for shared memory or special functions
--   mio_throttle: of those, cycles waiting for a place in the memory instruction queue
--   lg_throttle: of those, cycles waiting for a place in the global and local memory queue
--   barrier: of those, cycles waiting at a barrier
--   selected: of those, the cycle in which the warp issued
--   not_selected: of those, cycles in which it was ready but another warp issued
--   threads_per_inst: active threads an instruction, of 32
--   threads_on_per_inst: the same without those switched off by a predicate, of 32
--   fp64_pct: use of the double-precision pipe, % of peak
--   fp32_pct: use of the single-precision pipe, % of peak
--   tensor_pct: use of the tensor pipe, % of peak
--   global_sectors: 32-byte sectors that global accesses moved through L2
--   global_excess: of those, more than the accesses needed
--   bytes_per_sector_ld: bytes of each loaded sector that threads used, of 32
--   shared_wavefronts: shared-memory passes
--   shared_excess: of those, more than the accesses needed
--   l2_sectors: 32-byte sectors through L2
--   l2_atomic_sectors: of those, atomics and reductions from the SMs
--   atomic_unit_pct: use of the L2 atomic unit, % of peak
--   l2_imbalance: busiest L2 slice over the average one
--   local_requests: local-memory requests of L1
--   spill_requests: of those, spills
--   spill_share: spills as a part of all global and local requests, 0 to 1; on a details page as ncu states it
--   spill_inst_share: spills as a part of all instructions, 0 to 1
--   l1_hit_pct: L1 hit rate
--   l2_hit_pct: L2 hit rate
create view kernel_facts as
with wide as (
    select profile,
        max(value) filter (where metric = 'sm__throughput.avg.pct_of_peak_sustained_elapsed') as sm_pct,
        max(value) filter (where metric = 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed') as memory_pct,
        max(value) filter (where metric in ('gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed', 'dram__throughput.avg.pct_of_peak_sustained_elapsed')) as dram_pct,
        max(value) filter (where metric = 'lts__t_sectors.avg.pct_of_peak_sustained_elapsed' or metric = 'lts__throughput.avg.pct_of_peak_sustained_elapsed') as l2_pct,
        max(value) filter (where metric = 'l1tex__throughput.avg.pct_of_peak_sustained_active') as l1_pct,
        max(value) filter (where metric in ('l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed', 'l1tex__data_bank_reads.avg.pct_of_peak_sustained_elapsed')) as l1_data_pct,
        max(value) filter (where metric = 'sm__maximum_warps_per_active_cycle_pct') as theoretical_occupancy_pct,
        max(value) filter (where metric = 'sm__warps_active.avg.pct_of_peak_sustained_active') as achieved_occupancy_pct,
        max(value) filter (where metric = 'launch__registers_per_thread') as registers,
        max(value) filter (where metric = 'launch__occupancy_limit_registers') as limit_registers,
        max(value) filter (where metric = 'launch__occupancy_limit_shared_mem') as limit_shared,
        max(value) filter (where metric = 'launch__occupancy_limit_warps') as limit_warps,
        max(value) filter (where metric = 'launch__occupancy_limit_blocks') as limit_blocks,
        coalesce(max(value) filter (where metric = 'launch__shared_mem_per_block'),
                 sum(value) filter (where metric in ('launch__shared_mem_per_block_static', 'launch__shared_mem_per_block_dynamic', 'launch__shared_mem_per_block_driver'))) as shared_per_block,
        max(value) filter (where metric = 'launch__waves_per_multiprocessor') as waves,
        max(value) filter (where metric = 'launch__sm_count' or metric = 'device__attribute_multiprocessor_count') as sm_count,
        max(value) filter (where metric = 'smsp__issue_active.avg.per_cycle_active') as issue_active,
        coalesce(max(value) filter (where metric = 'smsp__average_warps_active_per_issue_active.ratio'),
                 max(value) filter (where metric = 'smsp__average_warp_latency_per_inst_issued.ratio')) as warp_cycles_per_issue,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio') as long_scoreboard,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio') as short_scoreboard,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio') as mio_throttle,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio') as lg_throttle,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio') as barrier,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_selected_per_issue_active.ratio') as selected,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio') as not_selected,
        max(value) filter (where metric = 'smsp__thread_inst_executed_per_inst_executed.ratio') as threads_per_inst,
        max(value) filter (where metric = 'smsp__thread_inst_executed_pred_on_per_inst_executed.ratio') as threads_on_per_inst,
        max(value) filter (where metric in ('sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active', 'sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active',
            'sm__inst_executed_pipe_fp64_op_dmma.avg.pct_of_peak_sustained_active')) as fp64_pct,
        max(value) filter (where metric in ('sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active', 'sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active')) as fp32_pct,
        max(value) filter (where regexp_matches(metric, '^sm__(inst_executed_pipe_tensor|pipe_tensor)[a-z0-9_]*\.avg\.pct_of_peak_sustained_(active|elapsed)$')) as tensor_pct,
        max(value) filter (where metric in ('memory_l2_theoretical_sectors_global')) as global_sectors,
        max(value) filter (where metric = 'derived__memory_l2_theoretical_sectors_global_excessive') as global_excess,
        max(value) filter (where metric = 'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio') as bytes_per_sector_ld,
        max(value) filter (where metric = 'memory_l1_wavefronts_shared') as shared_wavefronts,
        max(value) filter (where metric = 'derived__memory_l1_wavefronts_shared_excessive') as shared_excess,
        max(value) filter (where metric = 'lts__t_sectors.sum') as l2_sectors,
        coalesce(sum(value) filter (where metric in ('lts__t_sectors_srcunit_tex_op_atom.sum', 'lts__t_sectors_srcunit_tex_op_red.sum')),
            sum(value) filter (where metric in ('lts__t_sectors_op_atom.sum', 'lts__t_sectors_op_red.sum'))) as l2_atomic_sectors,
        max(value) filter (where metric in ('lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed', 'lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed')) as atomic_unit_pct,
        max(value) filter (where metric = 'lts__cycles_active.max') / nullif(max(value) filter (where metric = 'lts__cycles_active.avg'), 0) as l2_imbalance,
        sum(value) filter (where metric in ('l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum', 'l1tex__t_requests_pipe_lsu_mem_local_op_st.sum')) as local_requests,
        max(value) filter (where metric = 'derived__local_spilling_requests') as spill_requests,
        coalesce(max(value) filter (where metric = 'derived__local_spilling_requests') / nullif(sum(value) filter (where metric in (
                'l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum', 'l1tex__t_requests_pipe_lsu_mem_global_op_st.sum',
                'l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum', 'l1tex__t_requests_pipe_lsu_mem_local_op_st.sum')), 0),
            max(value) filter (where metric = 'derived__local_spilling_requests_pct') / 100) as spill_share,
        max(value) filter (where metric = 'derived__local_spilling_requests') / nullif(max(value) filter (where metric = 'smsp__inst_executed.sum'), 0) as spill_inst_share,
        max(value) filter (where metric = 'l1tex__t_sector_hit_rate.pct') as l1_hit_pct,
        max(value) filter (where metric = 'lts__t_sector_hit_rate.pct') as l2_hit_pct
    from kernel_metric group by profile
)
select p.id as profile, n.text as name, n.short, p.grid, p.block, p.duration_ns,
       p.duration_ns / sum(p.duration_ns) over () as run_share, w.* exclude (profile)
from kernel_profile p join name n on n.id = p.name left join wide w on w.profile = p.id;
