-- What each kind of wait is, and what a programmer can do about it. Stalls of a profiled launch, longest first.
--   profile: references kernel_profile
--   stall: Nsight Compute's name for it
--   share: part of the cycles from one instruction of a warp to its next, 0 to 1
--   means: what the warp waits for
--   cure: what shortens it
create view kernel_wait as
with waits as (
  select
    profile,
    warp_cycles_per_issue,
    unnest(
      [
        {'stall': 'long scoreboard',
        'cycles': long_scoreboard,
        'means': 'data from global, local or texture memory',
        'cure': 'read neighbouring addresses, load more before the first use, keep data in shared memory'},
        {'stall': 'short scoreboard',
        'cycles': short_scoreboard,
        'means': 'data from shared memory or a special-function result',
        'cure': 'avoid bank conflicts, exchange between threads by warp shuffles'},
        {'stall': 'MIO throttle',
        'cycles': mio_throttle,
        'means': 'a place in the queue to shared memory and special functions',
        'cure': 'fewer and wider shared-memory accesses'},
        {'stall': 'LG throttle',
        'cycles': lg_throttle,
        'means': 'a place in the queue to global and local memory',
        'cure': 'fewer and wider accesses, such as float4'},
        {'stall': 'tex throttle',
        'cycles': tex_throttle,
        'means': 'a place in the texture queue',
        'cure': 'fewer texture fetches, or ordinary loads'},
        {'stall': 'barrier',
        'cycles': barrier,
        'means': 'the other warps of its block at __syncthreads',
        'cure': 'smaller blocks, equal work for each warp, fewer barriers'},
        {'stall': 'membar',
        'cycles': membar,
        'means': 'a memory fence',
        'cure': 'fewer fences, or one of narrower scope'},
        {'stall': 'wait',
        'cycles': "wait",
        'means': 'the fixed latency of the instruction before',
        'cure': 'independent instructions in between: work on several elements in each thread'},
        {'stall': 'math pipe throttle',
        'cycles': math_pipe_throttle,
        'means': 'a busy compute pipe',
        'cure': 'fewer or cheaper instructions of that kind'},
        {'stall': 'no instruction',
        'cycles': no_instruction,
        'means': 'the next instruction to be fetched',
        'cure': 'less unrolling, shorter code in the hot loop'},
        {'stall': 'branch resolving',
        'cycles': branch_resolving,
        'means': 'the target of a branch',
        'cure': 'fewer branches'},
        {'stall': 'IMC miss',
        'cycles': imc_miss,
        'means': 'a constant that is not in its cache',
        'cure': 'the same constant for all threads of a warp'},
        {'stall': 'GMMA',
        'cycles': gmma,
        'means': 'a group of tensor-core instructions',
        'cure': 'more stages in the pipeline of tiles'}
      ]
    ) as w
  from kernel_facts
  where warp_cycles_per_issue > 0
)
select
  profile,
  w.stall,
  least(1, w.cycles / warp_cycles_per_issue) as share,
  w.means,
  w.cure
from waits
where w.cycles > 0;
