"""Nsight Compute's names: details-page labels, sections, and names that changed between versions.

The details page prints labels that are unique only within a section ("Memory Throughput" is a percentage in one
and bytes per second in another). The raw page prints metric names; these are what the store holds.
"""

from __future__ import annotations

import re

# Display name (details page, metric rows) → identifier (rule rows, and the `ncu_…` capabilities).
SECTIONS: dict[str, str] = {
    "GPU Speed Of Light Throughput": "SpeedOfLight",
    "GPU Speed Of Light": "SpeedOfLight",
    "Compute Workload Analysis": "ComputeWorkloadAnalysis",
    "Memory Workload Analysis": "MemoryWorkloadAnalysis",
    "Memory Workload Analysis Chart": "MemoryWorkloadAnalysis_Chart",
    "Memory Workload Analysis Tables": "MemoryWorkloadAnalysis_Tables",
    "Scheduler Statistics": "SchedulerStats",
    "Warp State Statistics": "WarpStateStats",
    "Instruction Statistics": "InstructionStats",
    "Launch Statistics": "LaunchStats",
    "Occupancy": "Occupancy",
    "GPU and Memory Workload Distribution": "WorkloadDistribution",
    "Source Counters": "SourceCounters",
    "PM Sampling": "PmSampling",
    "NUMA Affinity": "NumaAffinity",
    "NVLink": "Nvlink",
    "NVLink Topology": "Nvlink_Topology",
    "NVLink Tables": "Nvlink_Tables",
}

# Identifier → metrics of which one at least is in every raw page that holds the section.
WITNESSES: dict[str, tuple[str, ...]] = {
    "SpeedOfLight": (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "ComputeWorkloadAnalysis": ("sm__inst_executed.avg.per_cycle_active", "sm__inst_issued.avg.per_cycle_active"),
    "MemoryWorkloadAnalysis": ("gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",),
    "MemoryWorkloadAnalysis_Tables": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ),
    "SchedulerStats": ("smsp__warps_eligible.avg.per_cycle_active", "smsp__issue_active.avg.per_cycle_active"),
    "WarpStateStats": ("smsp__average_warp_latency_per_inst_issued.ratio",),
    "InstructionStats": ("smsp__inst_executed.sum", "smsp__inst_issued.sum"),
    "LaunchStats": ("launch__waves_per_multiprocessor", "launch__registers_per_thread"),
    "Occupancy": ("sm__maximum_warps_per_active_cycle_pct", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    "WorkloadDistribution": ("lts__cycles_active.avg", "dram__cycles_elapsed.sum"),
    "SourceCounters": (
        "smsp__sass_average_branch_targets_threads_uniform.pct",
        "derived__memory_l2_theoretical_sectors_global_excessive",
    ),
    "PmSampling": ("profiler__pmsampler_interval_cycles", "profiler__pmsampler_interval_time"),
}

_STALLS = {
    "Stall Barrier": "barrier",
    "Stall Branch Resolving": "branch_resolving",
    "Stall Dispatch Stall": "dispatch_stall",
    "Stall Drain": "drain",
    "Stall GMMA": "gmma",
    "Stall IMC Miss": "imc_miss",
    "Stall LG Throttle": "lg_throttle",
    "Stall Long Scoreboard": "long_scoreboard",
    "Stall Math Pipe Throttle": "math_pipe_throttle",
    "Stall Membar": "membar",
    "Stall MIO Throttle": "mio_throttle",
    "Stall Misc": "misc",
    "Stall No Instruction": "no_instruction",
    "Stall Not Selected": "not_selected",
    "Selected": "selected",
    "Stall Short Scoreboard": "short_scoreboard",
    "Stall Sleeping": "sleeping",
    "Stall Tex Throttle": "tex_throttle",
    "Stall Wait": "wait",
}


def stall(state: str) -> str:
    """The metric that counts warps stalled in `state` per issued instruction."""
    return f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"


# Section identifier → label → metric. Labels of ncu 2020.3 to 2025.3.
LABELS: dict[str, dict[str, str]] = {
    "SpeedOfLight": {
        "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
        "SM Frequency": "gpc__cycles_elapsed.avg.per_second",
        "Elapsed Cycles": "gpc__cycles_elapsed.max",
        "Memory Throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "Memory [%]": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "DRAM Throughput": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "SOL DRAM": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "Duration": "gpu__time_duration.sum",
        "L1/TEX Cache Throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "SOL L1/TEX Cache": "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "L2 Cache Throughput": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "SOL L2 Cache": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "SM Active Cycles": "sm__cycles_active.avg",
        "Compute (SM) Throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "Compute (SM) [%]": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "SM [%]": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    },
    "ComputeWorkloadAnalysis": {
        # "Issue Slots Busy" and "SM Busy" are left out: older versions mean the share of active cycles, newer ones that
        # of elapsed cycles, and the page does not say which.
        "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
        "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
        "Issued Ipc Active": "sm__inst_issued.avg.per_cycle_active",
    },
    "MemoryWorkloadAnalysis": {
        "Local Memory Spilling Requests": "derived__local_spilling_requests",
        "Local Memory Spilling Request Overhead": "derived__local_spilling_requests_pct",
        "Shared Memory Spilling Requests": "derived__shared_spilling_requests",
        "Shared Memory Spilling Request Overhead": "derived__shared_spilling_requests_pct",
        "Memory Throughput": "dram__bytes.sum.per_second",
        "Mem Busy": "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
        "Max Bandwidth": "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
        "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
        "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
        "Mem Pipes Busy": "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "L2 Persisting Size": "launch__persisting_l2_cache_size",
        "L2 Compression Success Rate": "lts__average_gcomp_input_sector_success_rate.pct",
        "L2 Compression Input Sectors": "lts__gcomp_input_sectors.sum",
    },
    "SchedulerStats": {
        "One or More Eligible": "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "Issued Warp Per Scheduler": "smsp__issue_active.avg.per_cycle_active",
        "No Eligible": "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
        "Active Warps Per Scheduler": "smsp__warps_active.avg.per_cycle_active",
        "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
        "Theoretical Warps Per Scheduler": "smsp__maximum_warps_avg_per_active_cycle",
        "GPU Maximum Warps Per Scheduler": "smsp__warps_active.avg.peak_sustained",
    },
    "WarpStateStats": {
        "Warp Cycles Per Issued Instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
        "Warp Cycles Per Executed Instruction": "smsp__average_warps_active_per_inst_executed.ratio",
        "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
        "Avg. Not Predicated Off Threads Per Warp": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        # Printed by `--print-details all` only.
        **{label: stall(state) for label, state in _STALLS.items()},
    },
    "InstructionStats": {
        "Avg. Executed Instructions Per Scheduler": "smsp__inst_executed.avg",
        "Executed Instructions": "smsp__inst_executed.sum",
        "Avg. Issued Instructions Per Scheduler": "smsp__inst_issued.avg",
        "Issued Instructions": "smsp__inst_issued.sum",
    },
    "LaunchStats": {
        "Block Size": "launch__block_size",
        "Cluster Size": "launch__cluster_size",
        "Cluster Scheduling Policy": "launch__cluster_scheduling_policy",
        "Function Cache Configuration": "launch__func_cache_config",
        "Grid Size": "launch__grid_size",
        "Registers Per Thread": "launch__registers_per_thread",
        "Shared Memory Configuration Size": "launch__shared_mem_config_size",
        "Driver Shared Memory Per Block": "launch__shared_mem_per_block_driver",
        "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
        "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
        "# SMs": "launch__sm_count",
        "# TPCs": "launch__tpc_count",
        "Enabled TPC IDs": "launch__tpc_enabled",
        "Stack Size": "launch__stack_size",
        "Threads": "launch__thread_count",
        "Uses Green Context": "launch__uses_green_context",
        "Waves Per SM": "launch__waves_per_multiprocessor",
    },
    "Occupancy": {
        "Max Active Clusters": "launch__cluster_max_active",
        "Max Cluster Size": "launch__cluster_max_potential_size",
        "Overall GPU Occupancy": "launch__occupancy_cluster_gpu_pct",
        "Cluster Occupancy": "launch__occupancy_cluster_pct",
        "Block Limit Barriers": "launch__occupancy_limit_barriers",
        "Block Limit SM": "launch__occupancy_limit_blocks",
        "Block Limit Registers": "launch__occupancy_limit_registers",
        "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
        "Block Limit Warps": "launch__occupancy_limit_warps",
        "Theoretical Active Warps per SM": "sm__maximum_warps_avg_per_active_cycle",
        "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
        "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Achieved Active Warps Per SM": "sm__warps_active.avg.per_cycle_active",
    },
    "WorkloadDistribution": {
        "Average DRAM Active Cycles": "dram__cycles_active.avg",
        "Total DRAM Elapsed Cycles": "dram__cycles_elapsed.sum",
        "Average L1 Active Cycles": "l1tex__cycles_active.avg",
        "Total L1 Elapsed Cycles": "l1tex__cycles_elapsed.sum",
        "Average L2 Active Cycles": "lts__cycles_active.avg",
        "Total L2 Elapsed Cycles": "lts__cycles_elapsed.sum",
        "Average SM Active Cycles": "sm__cycles_active.avg",
        "Total SM Elapsed Cycles": "sm__cycles_elapsed.sum",
        "Average SMSP Active Cycles": "smsp__cycles_active.avg",
        "Total SMSP Elapsed Cycles": "smsp__cycles_elapsed.sum",
    },
    "SourceCounters": {
        "Branch Instructions Ratio": "derived__smsp__inst_executed_op_branch_pct",
        "Branch Instructions": "smsp__inst_executed_op_branch.sum",
        "Branch Efficiency": "smsp__sass_average_branch_targets_threads_uniform.pct",
        "Avg. Divergent Branches": "smsp__sass_branch_targets_threads_divergent.avg",
    },
    "PmSampling": {
        "Maximum Buffer Size": "profiler__pmsampler_buffer_size_bytes",
        "Dropped Samples": "profiler__pmsampler_dropped_samples",
        "# Pass Groups": "profiler__pmsampler_pass_groups",
    },
}

# Begun at the start of a word only: from each letter of a long one it would take quadratic time.
_RAW_NAME = re.compile(r"(?<![\w.:])[A-Za-z][\w.:]*__[\w.:]+")


def section(name: str) -> str:
    """The identifier of a section named either way; an unknown name as it is."""
    return SECTIONS.get(name, name)


def metric(section_name: str, label: str) -> str:
    """The metric name behind a details-page label; `label:<Section>/<Metric>` when it is not on file.

    `--print-metric-name name` and `label-name` print the metric name itself: it is taken as it stands.
    """
    known = LABELS.get(section(section_name), {}).get(label)
    if known:
        return known
    spelled = _RAW_NAME.search(label)
    return spelled.group() if spelled else f"label:{section_name}/{label}"
