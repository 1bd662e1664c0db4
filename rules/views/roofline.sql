-- What one multiprocessor does in a cycle, by compute capability: operations (an addition and a multiplication each count) in single and double
-- precision, on tensor cores in half precision and in TF32 (dense, single-precision sums), and bytes of shared memory and L1.
-- Sources: NVIDIA's architecture white papers and the CUDA C++ Programming Guide, table of arithmetic instruction throughput.
create macro sm_peak() as table
    select * from (values
        ('6.0', 128, 64, 0, 0, 64), ('6.1', 256, 8, 0, 0, 128), ('7.0', 128, 64, 1024, 0, 128), ('7.5', 128, 4, 1024, 0, 64),
        ('8.0', 128, 64, 2048, 1024, 128), ('8.6', 256, 4, 512, 256, 128), ('8.9', 256, 4, 1024, 512, 128),
        ('9.0', 256, 128, 4096, 2048, 128), ('10.0', 256, 128, 8192, 4096, 128), ('12.0', 256, 4, 1024, 512, 128)
    ) as peaks(cc, fp32, fp64, tensor16, tensor32, shared_bytes);

-- Where a profiled launch stands under the roofs of its GPU.
-- materialised: the report and several rules read it
--   profile: references kernel_profile
--   intensity: operations for each byte that DRAM moved (FLOP/B); null when they were not counted, as those of tensor cores are not
--   ridge: the operations a byte from which on compute is the roof (FLOP/B), at the clocks measured
--   precision: fp32 or fp64, whichever does more
--   flop_share: its operations over the peak, 0 to 1
--   limit: the unit nearest to its roof: dram, l2, l1, pipe, tensor, issue; latency when none is near
--   busy_pct: how busy that unit is, % of its peak
--   floor_ns: what the busiest unit alone needs for the same work at its peak (ns)
--   clock_hz: the multiprocessors' clock during the launch
--   full_clock_hz: the GPU's own
--   device_name: the GPU
--   cc: its compute capability
--   stated_fp32: operations a cycle of all multiprocessors as the report states them
--   known_fp32: the same from the table above
create view kernel_roof as
with measured as (
    select f.*, p.cc, p.device_name, max(m.value) filter (where m.metric = 'device__attribute_clock_rate') * 1000 as full_clock_hz, k.fp32, k.fp64,
           max(m.value) filter (where m.metric in ('sm__cycles_elapsed.avg.per_second', 'gpc__cycles_elapsed.avg.per_second', 'smsp__cycles_elapsed.avg.per_second')) as sm_hz
    from kernel_facts f join kernel_profile p on p.id = f.profile
    left join kernel_metric m on m.profile = f.profile left join sm_peak() k on k.cc = p.cc group by all
), rated as (
    select *, coalesce(flop_fp64 / peak_fp64, 0) > coalesce(flop_fp32 / peak_fp32, 0) as in_double,
           greatest(flop_fp32 / peak_fp32, flop_fp64 / peak_fp64) as flop_share,
           -- These counters count cycles in which a multiprocessor had work; one without any is as far from the roof.
           active * greatest(coalesce(busiest_pipe_pct, 0), coalesce(fp64_pct, 0)) as pipe_pct,
           greatest(active * coalesce(l1_pct, 0), coalesce(l1_data_pct, 0)) as inner_pct,
           active * coalesce(tensor_pct, 0) as tensors_pct, active * 100 * coalesce(issue_active, 0) as issue_pct
    from (select m.*, coalesce(r.active_share, 1) as active from measured m left join kernel_rounds r using (profile))
), compared as (
    select *, greatest(coalesce(dram_pct, 0), coalesce(l2_pct, 0), inner_pct, pipe_pct, tensors_pct, issue_pct) as most_pct from rated
), named as (
    select *, case when dram_pct >= setting('roof_same') * most_pct then dram_pct else most_pct end as busy_pct from compared
)
select profile, case when tensors_pct > setting('tensor_used_pct') then null when in_double then flop_fp64 else flop_fp32 end * sm_hz * duration_ns / 1e9 / nullif(dram_bytes, 0) as intensity,
       case when in_double then coalesce(peak_fp64, fp64 * sm_count) else coalesce(peak_fp32, fp32 * sm_count) end * sm_hz / dram_bytes_per_s as ridge,
       case when in_double then 'fp64' else 'fp32' end as "precision", flop_share,
       case when busy_pct < setting('roof_near_pct') then 'latency' when dram_pct = busy_pct then 'dram' when tensors_pct = busy_pct then 'tensor'
            when pipe_pct = busy_pct then 'pipe' when inner_pct = busy_pct then 'l1' when l2_pct = busy_pct then 'l2' else 'issue' end as "limit",
       busy_pct, duration_ns * busy_pct / 100 as floor_ns, sm_hz as clock_hz, full_clock_hz, device_name, cc, peak_fp32 as stated_fp32, fp32 * sm_count as known_fp32
from named;

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
select profile, w.stall, w.cycles / warp_cycles_per_issue as share, w.means, w.cure from waits where w.cycles > 0;
