-- An operation that sorts indices for PyTorch, or works on them once sorted: to add values to the rows that were chosen
-- by index, as for the gradient of an array that was indexed, or for a random permutation. Seen in PyTorch since 1.9,
-- which sorts by radix; a sort for the gradient of nn.Embedding is none of these.
--   loop: references loop
--   iteration: references iteration
--   op: references gpu_op
--   api_call: the call that started it, when traced
--   duration_ns: how long it ran (ns)
--   kind: gradient or permutation
--   ends: whether it works on the sorted indices: it comes once for each sort
create view index_sort as
with kernel_name as (
  select
    id,
    case
      when contains(text, 'indexing_backward_kernel') then 'gradient'
      when contains(text, 'randperm_handle_duplicate_keys') then 'permutation'
    end as kind,
    contains(text, 'RadixSort') as sorts,
    -- numbers that are sorted along, and random keys: as many as the indices
    sorts or regexp_matches(text, 'arange_cuda_out|distribution_elementwise\w*<unsigned ') as prepares
  from name
  where id in (select distinct name from analysed_gpu_op where kind = 'kernel')
),
ordered as (
  select
    w.op,
    w.loop,
    w.iteration,
    w.stream,
    w.api_call,
    w.duration_ns,
    k.kind,
    k.sorts,
    k.prepares,
    -- the same for an unbroken row of what prepares, and for what follows it
    coalesce(count_if(not k.prepares) over before, 0) as others
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join kernel_name k on k.id = o.name
  where w.stream in (
    select distinct s.stream
    from analysed_gpu_op s
    join kernel_name e on e.id = s.name
    where e.kind is not null
  )
  window before
    as (partition by w.loop, w.stream order by w.start, w.op rows between unbounded preceding and 1 preceding)
)
select
  loop,
  iteration,
  op,
  api_call,
  duration_ns,
  max(kind) over (partition by loop, stream, others) as kind,
  not prepares as ends
from ordered
where prepares or kind is not null
qualify bool_or(sorts) over (partition by loop, stream, others)
  and max(kind) over (partition by loop, stream, others) is not null;
