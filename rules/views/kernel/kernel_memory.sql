-- Where the memory accesses of a profiled launch went, beyond what kernel_facts tells. Percentages are 0 to 100,
-- shares 0 to 1.
-- materialised: five rules read it
--   profile: references kernel_profile
--   dram_write_bytes: bytes written to DRAM (B)
--   reads_per_write: bytes read from DRAM for each byte written; null when nothing was written
--   host_bytes: bytes between the multiprocessors and host memory (B)
--   peer_bytes: the same with another GPU's memory (B)
--   far_share: these two as a part of all that went between the multiprocessors and L2, 0 to 1
--   slice_pct: the busiest L2 slice, % of its peak
--   slice_avg_pct: the average L2 slice, % of its peak
--   shared_atom_passes: passes that atomics on shared memory made
--   shared_atom_pct: these passes, % of those that were possible in the time
--   fma_share: single-precision operations that belong to fused multiply-adds, 0 to 1
create view kernel_memory as
with counted as (
  select
    profile,
    sum(value) filter (where metric = 'lts__t_sectors_srcunit_tex.sum') as sectors,
    sum(value) filter (
      where metric = 'lts__t_sectors_srcunit_tex_aperture_sysmem_op_read_lookup_miss.sum'
    ) as host_read,
    coalesce(
      sum(value) filter (
        where regexp_matches(metric, '^lts__t_sectors_srcunit_tex_aperture_sysmem_op_(write|red|atom)\.sum$')
      ),
      sum(value) filter (
        where regexp_matches(
          metric,
          '^lts__t_sectors_srcunit_tex_aperture_sysmem_op_(write|red|atom_dot_[a-z]+)_lookup_miss\.sum$'
        )
      )
    ) as host_write,
    sum(value) filter (
      where metric = 'lts__t_sectors_srcunit_tex_aperture_peer_op_read_lookup_miss.sum'
    ) as peer_read,
    coalesce(
      sum(value)
        filter (where regexp_matches(metric, '^lts__t_sectors_srcunit_tex_aperture_peer_op_(write|red|atom)\.sum$')),
      sum(value) filter (
        where regexp_matches(
          metric,
          '^lts__t_sectors_srcunit_tex_aperture_peer_op_(write|red|atom_dot_[a-z]+)_lookup_miss\.sum$'
        )
      )
    ) as peer_write,
    max(value) filter (where metric = 'lts__throughput.max.pct_of_peak_sustained_elapsed') as slice_pct,
    max(value) filter (where metric = 'lts__throughput.avg.pct_of_peak_sustained_elapsed') as slice_avg_pct,
    max(value) filter (where metric = 'l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum') as shared_atom_passes,
    max(value) filter (
      where metric = 'l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum.pct_of_peak_sustained_elapsed'
    ) as shared_atom_pct,
    2 * max(value) filter (
      where metric = 'smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed'
    ) as fma_operations
  from kernel_metric
  group by profile
)
select
  f.profile,
  f.dram_bytes - f.dram_read_bytes as dram_write_bytes,
  f.dram_read_bytes / nullif(f.dram_bytes - f.dram_read_bytes, 0) as reads_per_write,
  32 * (coalesce(c.host_read, 0) + coalesce(c.host_write, 0)) as host_bytes,
  32 * (coalesce(c.peer_read, 0) + coalesce(c.peer_write, 0)) as peer_bytes,
  (coalesce(c.host_read, 0) + coalesce(c.host_write, 0) + coalesce(c.peer_read, 0) + coalesce(c.peer_write, 0))
    / nullif(c.sectors, 0) as far_share,
  c.slice_pct,
  c.slice_avg_pct,
  c.shared_atom_passes,
  c.shared_atom_pct,
  c.fma_operations / nullif(f.flop_fp32, 0) as fma_share
from kernel_facts f
left join counted c using (profile);
