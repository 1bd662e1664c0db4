-- A kernel launch measured by Nsight Compute, its metrics by meaning. Percentages are 0 to 100, shares 0 to 1.
-- materialised: every kernel rule reads it
--   profile: references kernel_profile
--   name: the kernel's full name
--   short: its base name
--   grid: blocks
--   block: threads a block
--   duration_ns: how long it ran (ns)
--   launch_shape: a number that launches share which agree in kernel, grid, block, registers, shared memory and GPU:
--    only these are compared
--   run_share: its part of the time of all profiled launches, 0 to 1
--   sm_count: multiprocessors
--   sm_pct: SM throughput: the busiest part of the multiprocessors, which may be a compute pipe, the issue of
--    instructions or the path to memory, % of peak
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
--   shared_own: of those, what the program asked for (B)
--   shared_static: of those, fixed when it was compiled (B)
--   shared_dynamic: of those, asked for at the launch (B)
--   waves: grid in units of what the GPU holds at once
--   issue_active: part of cycles in which a scheduler issued, 0 to 1
--   issue_share: instructions executed as a part of those that all schedulers of the GPU can issue in the launch's
--    time, 0 to 1
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
--   alu_pct: use of the pipe for integer and logic operations, % of peak
--   busiest_pipe_pct: the busiest pipe, those to memory among them, % of peak
--   second_pipe_pct: the one after it, % of peak
--   compute_pipe_pct: the busiest pipe that computes, tensor cores among them, % of peak; null where no section tells
--   dram_bytes: bytes that DRAM moved (B)
--   dram_read_bytes: of those, read (B)
--   dram_bytes_per_s: the DRAM peak as the report states it (B/s)
--   dram_floor_ns: what DRAM alone needs for those bytes at its peak (ns)
--   sm_imbalance: the busiest multiprocessor's cycles over the average
--   shared_atoms: atomic instructions on shared memory
--   flop_fp32: single-precision operations a cycle, of all multiprocessors
--   flop_fp64: double-precision operations a cycle
--   peak_fp32: what the GPU can do of the former
--   peak_fp64: what the GPU can do of the latter
--   clock_hz: the multiprocessors' clock during the launch
--   full_clock_hz: the GPU's own
--   source_stated: true where a details page holds the source counters of the launch: their figures are there only
--    where one of ncu's own rules names them
--   stall_stated: true where a details page holds its warp states: of the stalls only the one that ncu's own rule
--    names is there
create view kernel_facts as
-- `case` and no `filter`: DuckDB sets memory for every column of the whole list aside for each `filter`.
with wide as (
  select
    profile,
    max(case when metric = 'sm__throughput.avg.pct_of_peak_sustained_elapsed' then value end) as sm_pct,
    max(case when metric = 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed' then value end)
      as memory_pct,
    max(
      case
        when metric in (
          'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
          'dram__throughput.avg.pct_of_peak_sustained_elapsed'
        ) then value
      end
    ) as dram_pct,
    max(
      case
        when metric = 'lts__t_sectors.avg.pct_of_peak_sustained_elapsed'
          or metric = 'lts__throughput.avg.pct_of_peak_sustained_elapsed' then value
      end
    ) as l2_pct,
    max(case when metric = 'l1tex__throughput.avg.pct_of_peak_sustained_active' then value end) as l1_pct,
    max(
      case
        when metric in (
          'l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed',
          'l1tex__data_bank_reads.avg.pct_of_peak_sustained_elapsed'
        ) then value
      end
    ) as l1_data_pct,
    max(case when metric = 'sm__maximum_warps_per_active_cycle_pct' then value end) as theoretical_occupancy_pct,
    max(case when metric = 'sm__warps_active.avg.pct_of_peak_sustained_active' then value end)
      as achieved_occupancy_pct,
    max(case when metric = 'launch__registers_per_thread' then value end) as registers,
    max(case when metric = 'launch__occupancy_limit_registers' then value end) as limit_registers,
    max(case when metric = 'launch__occupancy_limit_shared_mem' then value end) as limit_shared,
    max(case when metric = 'launch__occupancy_limit_warps' then value end) as limit_warps,
    max(case when metric = 'launch__occupancy_limit_blocks' then value end) as limit_blocks,
    coalesce(
      max(case when metric = 'launch__shared_mem_per_block' then value end),
      sum(
        case
          when metric in (
            'launch__shared_mem_per_block_static',
            'launch__shared_mem_per_block_dynamic',
            'launch__shared_mem_per_block_driver'
          ) then value
        end
      )
    ) as shared_per_block,
    sum(
      case
        when metric in ('launch__shared_mem_per_block_static', 'launch__shared_mem_per_block_dynamic') then value
      end
    ) as shared_own,
    max(case when metric = 'launch__shared_mem_per_block_static' then value end) as shared_static,
    max(case when metric = 'launch__shared_mem_per_block_dynamic' then value end) as shared_dynamic,
    max(case when metric = 'launch__waves_per_multiprocessor' then value end) as waves,
    max(case when metric = 'launch__sm_count' or metric = 'device__attribute_multiprocessor_count' then value end)
      as sm_count,
    coalesce(
      -- more digits
      max(case when metric = 'smsp__issue_active.avg.pct_of_peak_sustained_active' then value end) / 100,
      max(case when metric = 'smsp__issue_active.avg.per_cycle_active' then value end)
    ) as issue_active,
    coalesce(
      max(case when metric = 'smsp__average_warps_active_per_issue_active.ratio' then value end),
      max(case when metric = 'smsp__average_warp_latency_per_inst_issued.ratio' then value end)
    ) as warp_cycles_per_issue,
    max(case when metric = stall_counter('long_scoreboard') then value end) as long_scoreboard,
    max(case when metric = stall_counter('short_scoreboard') then value end) as short_scoreboard,
    max(case when metric = stall_counter('mio_throttle') then value end) as mio_throttle,
    max(case when metric = stall_counter('lg_throttle') then value end) as lg_throttle,
    max(case when metric = stall_counter('barrier') then value end) as barrier,
    max(case when metric = stall_counter('selected') then value end) as selected,
    max(case when metric = stall_counter('not_selected') then value end) as not_selected,
    max(case when metric = 'smsp__thread_inst_executed_per_inst_executed.ratio' then value end) as threads_per_inst,
    max(case when metric = 'smsp__thread_inst_executed_pred_on_per_inst_executed.ratio' then value end)
      as threads_on_per_inst,
    max(
      case
        when metric in (
          'sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active',
          'sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active',
          'sm__inst_executed_pipe_fp64_op_dmma.avg.pct_of_peak_sustained_active'
        ) then value
      end
    ) as fp64_pct,
    max(
      case
        when metric in (
          'sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active',
          'sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active'
        ) then value
      end
    ) as fp32_pct,
    max(
      case
        when regexp_matches(
          metric,
          '^sm__(inst_executed_pipe_tensor|pipe_tensor)[a-z0-9_]*\.avg\.pct_of_peak_sustained_(active|'
          'elapsed)$'
        ) then value
      end
    ) as tensor_pct,
    max(case when metric in ('memory_l2_theoretical_sectors_global') then value end) as global_sectors,
    max(case when metric = 'derived__memory_l2_theoretical_sectors_global_excessive' then value end) as global_excess,
    max(case when metric = 'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio' then value end)
      as bytes_per_sector_ld,
    max(case when metric = 'memory_l1_wavefronts_shared' then value end) as shared_wavefronts,
    max(case when metric = 'derived__memory_l1_wavefronts_shared_excessive' then value end) as shared_excess,
    max(case when metric = 'lts__t_sectors.sum' then value end) as l2_sectors,
    coalesce(
      sum(
        case
          when metric in ('lts__t_sectors_srcunit_tex_op_atom.sum', 'lts__t_sectors_srcunit_tex_op_red.sum')
            then value
        end
      ),
      sum(case when metric in ('lts__t_sectors_op_atom.sum', 'lts__t_sectors_op_red.sum') then value end)
    ) as l2_atomic_sectors,
    max(
      case
        when metric in (
          'lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed',
          'lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed'
        ) then value
      end
    ) as atomic_unit_pct,
    max(case when metric = 'lts__cycles_active.max' then value end)
      / nullif(max(case when metric = 'lts__cycles_active.avg' then value end), 0) as l2_imbalance,
    sum(
      case
        when metric in (
          'l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum',
          'l1tex__t_requests_pipe_lsu_mem_local_op_st.sum'
        ) then value
      end
    ) as local_requests,
    max(case when metric = 'derived__local_spilling_requests' then value end) as spill_requests,
    coalesce(
      max(case when metric = 'derived__local_spilling_requests' then value end) / nullif(
        sum(
          case
            when metric in (
              'l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum',
              'l1tex__t_requests_pipe_lsu_mem_global_op_st.sum',
              'l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum',
              'l1tex__t_requests_pipe_lsu_mem_local_op_st.sum'
            ) then value
          end
        ),
        0
      ),
      max(case when metric = 'derived__local_spilling_requests_pct' then value end) / 100
    ) as spill_share,
    max(case when metric = 'derived__local_spilling_requests' then value end)
      / nullif(max(case when metric = 'smsp__inst_executed.sum' then value end), 0) as spill_inst_share,
    max(case when metric = 'l1tex__t_sector_hit_rate.pct' then value end) as l1_hit_pct,
    max(case when metric = 'lts__t_sector_hit_rate.pct' then value end) as l2_hit_pct,
    max(case when metric = stall_counter('tex_throttle') then value end) as tex_throttle,
    max(case when metric = stall_counter('wait') then value end) as "wait",
    max(case when metric = stall_counter('math_pipe_throttle') then value end) as math_pipe_throttle,
    max(case when metric = stall_counter('no_instruction') then value end) as no_instruction,
    max(case when metric = stall_counter('branch_resolving') then value end) as branch_resolving,
    max(case when metric = stall_counter('imc_miss') then value end) as imc_miss,
    max(case when metric = stall_counter('membar') then value end) as membar,
    max(case when metric = stall_counter('gmma') then value end) as gmma,
    max(case when metric = 'sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active' then value end) as xu_pct,
    max(case when metric = 'sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active' then value end) as alu_pct,
    max(case when is_pipe(metric) then value end) as busiest_pipe_pct,
    max(
      case
        when is_compute_pipe(metric)
          or regexp_matches(
            metric,
            '^sm__pipe_(alu|fma|fp64|tensor)[a-z0-9_]*cycles_active\.avg\.pct_of_peak_sustained_(active|'
            'elapsed)$'
          ) then value
      end
    ) as compute_pipe_pct,
    list_reverse_sort(list(value) filter (where is_pipe(metric)))[2] as second_pipe_pct,
    coalesce(
      sum(case when metric in ('dram__bytes_read.sum', 'dram__bytes_write.sum') then value end),
      max(
        case when metric = 'dram__bytes.sum.per_second' then value end
      ) * max(case when metric = 'gpu__time_duration.sum' then value end) / 1e9
    ) as dram_bytes,
    max(case when metric = 'dram__bytes_read.sum' then value end) as dram_read_bytes,
    max(case when metric = 'dram__bytes.sum.peak_sustained' then value end)
      * max(case when metric = 'dram__cycles_elapsed.avg.per_second' then value end) as dram_bytes_per_s,
    max(case when metric = 'sm__cycles_active.max' then value end)
      / nullif(max(case when metric = 'sm__cycles_active.avg' then value end), 0) as sm_imbalance,
    max(case when metric = 'smsp__inst_executed_op_shared_atom.sum' then value end) as shared_atoms,
    sum(
      case
        when regexp_matches(
          metric,
          '^smsp__sass_thread_inst_executed_op_f(add|mul|fma)_pred_on\.sum\.per_cycle_elapsed$'
        ) then case when metric like '%_op_ffma_pred_on.sum.per_cycle_elapsed' then 2 * value else value end
      end
    ) as flop_fp32,
    sum(
      case
        when regexp_matches(
          metric,
          '^smsp__sass_thread_inst_executed_op_d(add|mul|fma)_pred_on\.sum\.per_cycle_elapsed$'
        ) then case when metric like '%_op_dfma_pred_on.sum.per_cycle_elapsed' then 2 * value else value end
      end
    ) as flop_fp64,
    2 * max(
      case when metric = 'sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained' then value end
    ) as peak_fp32,
    2 * max(
      case when metric = 'sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained' then value end
    ) as peak_fp64,
    max(
      case
        when metric in (
          'sm__cycles_elapsed.avg.per_second',
          'gpc__cycles_elapsed.avg.per_second',
          'smsp__cycles_elapsed.avg.per_second'
        ) then value
      end
    ) as clock_hz,
    1000 * max(case when metric = 'device__attribute_clock_rate' then value end) as full_clock_hz,
    max(case when metric = 'smsp__inst_executed.sum' then value end) as instructions,
    count(*) filter (
      where metric like 'smsp__sass_average_branch_targets_threads_uniform.%' and value is not null
    ) > 0 as has_source
  from kernel_metric
  group by profile
),
-- launches of details pages
details as (
  select p.id as profile
  from kernel_profile p
  join capability c on c.input = p.input
  where c.name = 'ncu_raw' and c.state = 'not_recorded'
)
select
  p.id as profile,
  n.text as name,
  n.short,
  p.grid,
  p.block,
  p.duration_ns,
  dense_rank() over (
    order by n.text, p.grid, p.block, w.registers, w.shared_static, w.shared_dynamic, p.device_name
  ) as launch_shape,
  coalesce(p.duration_ns / sum(p.duration_ns) over (), 1.0 / count(*) over ()) as run_share,
  w.* exclude (profile, has_source, instructions),
  w.instructions / nullif(w.sm_count * setting('sm_schedulers') * p.duration_ns * w.clock_hz / 1e9, 0) as issue_share,
  case when d.profile is not null and w.has_source then true end as source_stated,
  case when d.profile is not null and w.warp_cycles_per_issue is not null then true end as stall_stated,
  p.duration_ns
    * coalesce(w.dram_pct / 100, w.dram_bytes / w.dram_bytes_per_s / p.duration_ns * 1e9, 0) as dram_floor_ns
from kernel_profile p
join name n on n.id = p.name
left join wide w on w.profile = p.id
left join details d on d.profile = p.id;
