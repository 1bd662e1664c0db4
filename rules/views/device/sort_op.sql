-- An operation that sorts for PyTorch, or works on what is sorted: indices, to add values to the rows that were
-- chosen by index, as for the gradient of an array that was indexed, or for a random permutation; or the rows of an
-- array, where running sums follow, as in top-p sampling (of 2 to 127 rows where they follow most of these sorts); or
-- many rows or short ones, where what follows works on far fewer values, as on the first few of each row. Seen in
-- PyTorch since 1.9, which sorts by radix; a sort for the gradient of nn.Embedding is none of these, nor that of a
-- single row.
--   loop: references loop
--   iteration: references iteration
--   op: references gpu_op
--   api_call: the call that started it, when traced
--   duration_ns: how long it ran (ns)
--   kind: gradient, permutation, rows, or part of the rows
--   ends: whether it works on what is sorted, or is the last to sort a part of which is used: once for each sort
create view sort_op as
with kernel_name as (
  select
    id,
    case
      when contains(text, 'indexing_backward_kernel') then 'gradient'
      when contains(text, 'randperm_handle_duplicate_keys') then 'permutation'
      when contains(text, 'sort_postprocess_kernel') then 'rows'
      when regexp_matches(text, 'radixSortKVInPlace|DeviceSegmentedRadixSort') then 'part'
    end as kind,
    regexp_matches(text, 'scan_innermost_dim<.*plus') as sums,
    regexp_matches(text, 'RadixSort|radixSortKVInPlace') as sorts,
    regexp_matches(text, 'elementwise|[Gg]ather|[Cc]opy')
      and not regexp_matches(text, '(?i)nccl|cutlass|cute::|gemm|triton_(red|per)_|grid_stride|CatArray') as moves,
    -- numbers that are sorted along, and random keys: as many as the indices
    sorts
      or regexp_matches(
        text,
        'arange_cuda_out|distribution_elementwise\w*<unsigned |fill_index_and_segment|fill_reverse_indices'
      ) as prepares
  from name
  where id in (select distinct name from analysed_gpu_op where kind = 'kernel')
),
numbered as (
  select
    w.op,
    w.loop,
    w.iteration,
    w.stream,
    w.api_call,
    w.duration_ns,
    o.name,
    o.grid * o.block as threads,
    row_number() over by_time as place,
    -- of the kernels that come next, where each of their threads works on a few values: no product, no sum of rows
    case when bool_and(k.moves) over by_next then max(o.grid * o.block) over by_next end as next_threads
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join kernel_name k on k.id = o.name
  where o.kind = 'kernel'
    and w.stream in (
      select distinct s.stream
      from analysed_gpu_op s
      join kernel_name e on e.id = s.name
      where e.kind is not null
    )
  window by_time as (partition by w.loop, w.stream order by w.start, w.op), by_next as (
    partition by w.loop, w.stream
    order by w.start, w.op
    rows between 1 following and cast(setting('sort_used_next') as bigint) following
  )
),
ordered as (
  select
    w.*,
    k.kind,
    k.sorts,
    k.prepares,
    max(if(k.kind in ('rows', 'part'), w.place, null)) over before as sorted_at,
    last_value(if(k.kind in ('rows', 'part'), k.kind, null) ignore nulls) over before as sorted_kind,
    -- a running sum of rows that were sorted just before
    k.sums and coalesce(w.place - sorted_at <= setting('sort_used_within'), false) as sums,
    -- how many others come before: the same for an unbroken row of what prepares, and for what follows it
    w.place - coalesce(count_if(k.prepares) over before, 0) as others
  from numbered w
  join kernel_name k on k.id = w.name
  where k.prepares or k.kind is not null or k.sums
  window before as (partition by w.loop, w.stream order by w.place rows between unbounded preceding and 1 preceding)
),
summed as (
  select
    loop,
    stream,
    sorted_at as place
  from ordered
  where sums
),
part as (
  select
    loop,
    iteration,
    stream,
    op,
    api_call,
    duration_ns,
    sums,
    sorted_at,
    prepares,
    case
      when sums or bool_or((loop, stream, place) in (from summed)) over run then 'rows'
      else coalesce(max(kind) filter (kind <> 'part') over run, max(kind) over run)
    end as kind,
    if(sums, sorted_kind = 'part', coalesce(bool_and(kind = 'part') filter (kind is not null) over run, false))
      as in_segments,
    bool_or(sorts) over run as sorts,
    place = max(if(sums, null, place)) over run as is_last,
    -- a thread of these sorts works on ten values or more, one that moves values on sixteen at most
    coalesce(
      arg_max_null(next_threads, place) over run < setting('sort_used_threads') * max(if(sorts, threads, 0)) over run,
      false
    ) as uses_few
  from ordered
  where prepares or kind is not null or sums
  window run as (partition by loop, stream, others)
)
select
  loop,
  iteration,
  op,
  api_call,
  duration_ns,
  kind,
  if(in_segments, is_last and not sums, not (prepares or sums)) as ends
from part
where kind is not null and (sorts or sums) and (kind <> 'part' or uses_few)
qualify kind <> 'rows'
  or in_segments
  or count(distinct if(sums and not in_segments, sorted_at, null))
    over (partition by loop, stream) >= setting('most_share')
    * count_if(kind = 'rows' and not (in_segments or prepares or sums)) over (partition by loop, stream);
