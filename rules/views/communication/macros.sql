-- How far apart two ranks may see the end of one collective (ns), beside a constant distance of their clocks: its
-- kernels end within some 10 µs of each other, two runs of one program drift apart by more.
create macro rank_spread_ns() as 50000;

-- How far apart ranks of one communicator may see the end of one of its collectives (ns), where several communicators
-- have to be distinguished: work of its own separates two of them by more.
create macro rank_end_ns() as 10000;

-- How far the clocks that two captures state may be from what their collectives say (ns): clocks of a cluster agree to
-- far less than a second, two runs one after another lie further apart.
create macro rank_clock_ns() as 1000000000;

-- Part of the communication that a message needs to say how gradients travel: a loss to print, or a counter, is
-- smaller.
create macro message_share() as 0.1;

-- PyTorch's operation that a call is for, by the path of its NVTX range: PyTorch marks each exchange that it starts as
-- nccl:all_to_all, `nccl:send 0->1` and so on; null outside such a range.
create macro torch_exchange(path) as nullif(regexp_extract(path, '.*\b(nccl:\w+)', 1), '');

-- The collectives of every process, numbered so that the same one has the same numbers on every rank: NCCL needs all
-- ranks to start the collectives of a communicator in one order, and a communicator keeps to its streams.
create macro numbered_collectives() as table
with own as (
  select
    c.gpu_op,
    o.process,
    o.start,
    o."end",
    c.op,
    min(o.start) over (partition by o.process, o.stream) as opens,
    row_number() over (partition by o.process, o.stream order by o.start, o.id) as sequence
  from collective c
  join gpu_op o on o.id = c.gpu_op
)
select
  gpu_op,
  process,
  start,
  "end",
  op,
  sequence,
  dense_rank() over (partition by process order by opens) as channel
from own;

-- Which processes, of one capture or of several, took part in the same collectives, by process and job. A collective
-- ends on all ranks at the same moment, so between two ranks of one job the ends of all collectives lie the same time
-- apart; between two runs, those times drift (most_spread). Clocks that both captures state must agree with that
-- distance (most_apart). Arguments in ns, and how many collectives, and which part of all, they must have in common.
create macro joined_ranks(least_shared, least_part, most_spread, most_apart) as table
with own as (
  from numbered_collectives()
),
total as (
  select
    process,
    count(*) as n
  from own
  group by process
),
matched as (
  select
    a.process as first,
    b.process as second,
    count(*) as n,
    median(a."end" - b."end") as offset_ns,
    mad(a."end" - b."end") as spread_ns
  from own a
  join own b on b.channel = a.channel and b.sequence = a.sequence and b.op = a.op and b.process > a.process
  group by a.process, b.process
),
joined as (
  select
    m.first,
    m.second
  from matched m
  join total t on t.process = m.first
  join total u on u.process = m.second
  join process p on p.id = m.first
  join input i on i.id = p.input
  join process q on q.id = m.second
  join input j on j.id = q.input
  where m.n >= least_shared
    and m.n >= least_part * greatest(t.n, u.n)
    and m.spread_ns <= most_spread
    and coalesce(abs(m.offset_ns - (j.clock_offset_ns - i.clock_offset_ns)) <= most_apart, true)
)
select
  process,
  min(job) as job
from (
  select
    first as process,
    first as job
  from joined
  union all
  select
    second,
    first
  from joined
)
group by process;

-- Whether a kernel, by its full name, or the NVTX range it was started in, updates parameters: an optimizer step.
create macro updates_parameters(kernel_name, path) as
  regexp_matches(kernel_name, 'multi_tensor_apply|[Ff]used_?([Aa]dam|[Ss]gd|SGD|[Ll]amb|[Oo]ptim)|[Oo]ptimizer')
    or coalesce(regexp_matches(lower(path), '(^|[^a-z])optim'), false);
