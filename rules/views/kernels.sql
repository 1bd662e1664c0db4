-- Whether a metric is the use of one compute pipe, % of peak.
create macro is_pipe(metric) as regexp_matches(metric,
    '^sm__inst_executed_pipe_(alu|fma|fma_type_fp16|fp16|fp64|xu|lsu|tex|uniform|tensor_op_[a-z]+)\.avg\.pct_of_peak_sustained_active$');

-- Whether a kernel comes with a library: its inside is not the reader's to change, the call is.
create macro is_library_kernel(name) as regexp_matches(name,
    '^nccl|cublas|cudnn|cutlass|nvjet|xmma|^cub::|[ :]cub::|thrust::|at::native|at::cuda|^void at::|^at::|cufft|vector_fft|regular_fft|cusparse|cusolver|curand|magma_|flash_fwd|flash_bwd|fmha_|^volta_|^turing_|^ampere_|^hopper_|^maxwell_|gemmSN|gemv2|^gemmk1|Device(Reduce|SegmentedReduce|FixedSizeSegmentedReduce|Scan|RadixSort|Histogram|Select|Merge)');

-- A kernel's name as both profilers agree on it: Nsight Compute leaves out namespaces and the casts of template arguments.
create macro kernel_key(name) as regexp_replace(regexp_replace(regexp_replace(name,
    '\((unsigned |signed )?(int|bool|long|char|short|long long)( int)?\)', '', 'g'), '(\w+|<unnamed>|\(anonymous namespace\)|\[lambda[^\]]*\])::', '', 'g'), '^void |abi:|\s', '', 'g');

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
--   tex_throttle: of warp_cycles_per_issue, cycles waiting for a place in the texture queue
--   wait: of those, cycles of a fixed latency after the instruction before
--   math_pipe_throttle: of those, cycles waiting for a busy compute pipe
--   no_instruction: of those, cycles without a fetched instruction
--   branch_resolving: of those, cycles until a branch target is known
--   imc_miss: of those, cycles waiting for the constant cache
--   membar: of those, cycles waiting for a memory fence
--   gmma: of those, cycles waiting for a group of tensor-core instructions
--   xu_pct: use of the transcendental and conversion pipe, % of peak
--   alu_pct: use of the integer and logic pipe, % of peak
--   lsu_pct: use of the load-store pipe, % of peak
--   busiest_pipe_pct: the busiest compute pipe, % of peak
--   second_pipe_pct: the one after it, % of peak
--   dram_bytes: bytes that DRAM moved (B)
--   dram_read_bytes: of those, read (B)
--   dram_bytes_per_s: the DRAM peak as the report states it (B/s)
--   dram_floor_ns: what DRAM alone needs for those bytes at its peak (ns)
--   sm_imbalance: the busiest multiprocessor's cycles over the average
--   sysmem_sectors: 32-byte sectors that L2 fetched from host memory
--   peer_sectors: the same from another GPU
--   shared_atoms: atomic instructions on shared memory
--   shared_atom_conflicts: extra passes that they made
--   flop_fp32: single-precision operations a cycle, of all multiprocessors
--   flop_fp64: double-precision operations a cycle
--   peak_fp32: what the GPU can do of the former
--   peak_fp64: what the GPU can do of the latter
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
        max(value) filter (where metric = 'lts__t_sector_hit_rate.pct') as l2_hit_pct,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio') as tex_throttle,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_wait_per_issue_active.ratio') as "wait",
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio') as math_pipe_throttle,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio') as no_instruction,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio') as branch_resolving,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio') as imc_miss,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_membar_per_issue_active.ratio') as membar,
        max(value) filter (where metric = 'smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio') as gmma,
        max(value) filter (where metric = 'sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active') as xu_pct,
        max(value) filter (where metric in ('sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active', 'sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active')) as alu_pct,
        max(value) filter (where metric = 'sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active') as lsu_pct,
        max(value) filter (where is_pipe(metric)) as busiest_pipe_pct,
        list_reverse_sort(list(value) filter (where is_pipe(metric)))[2] as second_pipe_pct,
        sum(value) filter (where metric in ('dram__bytes_read.sum', 'dram__bytes_write.sum')) as dram_bytes,
        max(value) filter (where metric = 'dram__bytes_read.sum') as dram_read_bytes,
        max(value) filter (where metric = 'dram__bytes.sum.peak_sustained') * max(value) filter (where metric = 'dram__cycles_elapsed.avg.per_second') as dram_bytes_per_s,
        max(value) filter (where metric = 'sm__cycles_active.max') / nullif(max(value) filter (where metric = 'sm__cycles_active.avg'), 0) as sm_imbalance,
        max(value) filter (where metric = 'lts__t_sectors_aperture_sysmem_lookup_miss.sum') as sysmem_sectors,
        max(value) filter (where metric = 'lts__t_sectors_aperture_peer_lookup_miss.sum') as peer_sectors,
        max(value) filter (where metric = 'smsp__inst_executed_op_shared_atom.sum') as shared_atoms,
        max(value) filter (where metric = 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum') as shared_atom_conflicts,
        sum(case when metric like '%_op_ffma_pred_on.sum.per_cycle_elapsed' then 2 * value else value end)
            filter (where regexp_matches(metric, '^smsp__sass_thread_inst_executed_op_f(add|mul|fma)_pred_on\.sum\.per_cycle_elapsed$')) as flop_fp32,
        sum(case when metric like '%_op_dfma_pred_on.sum.per_cycle_elapsed' then 2 * value else value end)
            filter (where regexp_matches(metric, '^smsp__sass_thread_inst_executed_op_d(add|mul|fma)_pred_on\.sum\.per_cycle_elapsed$')) as flop_fp64,
        2 * max(value) filter (where metric = 'sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained') as peak_fp32,
        2 * max(value) filter (where metric = 'sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained') as peak_fp64
    from kernel_metric group by profile
)
select p.id as profile, n.text as name, n.short, p.grid, p.block, p.duration_ns,
       p.duration_ns / sum(p.duration_ns) over () as run_share, w.* exclude (profile),
       p.duration_ns * coalesce(w.dram_pct / 100, w.dram_bytes / w.dram_bytes_per_s / p.duration_ns * 1e9, 0) as dram_floor_ns
from kernel_profile p join name n on n.id = p.name left join wide w on w.profile = p.id;

-- A profiled launch whose kernel the timeline shows as well: where it runs, and what share of the loop it takes.
-- materialised: every kernel finding is placed by it
--   profile: references kernel_profile
--   loop: references loop
--   gpu_ops: the kernel's launches in the loop
--   share: its part of the loop, 0 to 1
--   median_ns: its median duration in the timeline (ns)
--   exactly: whether grid and block agree too
create view kernel_match as
with candidate as (
    select f.profile, u.loop, u.gpu_ops, u.share, u.median_ns, u.total_ns, f.grid = u.grid and f.block = u.block as exactly,
           kernel_key(f.name) = kernel_key(u.name) as same_name
    from kernel_facts f join kernel_use u on u.short = f.short
), ranked as (
    select *, dense_rank() over (partition by profile, loop order by same_name desc, exactly desc) as place from candidate where same_name or exactly
)
select profile, loop, flatten(list(gpu_ops)) as gpu_ops, sum(share) as share, arg_max(median_ns, total_ns) as median_ns, bool_and(exactly) as exactly
from ranked where place = 1 group by profile, loop;
