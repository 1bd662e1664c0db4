-- A kernel of an attention that runs as several: a product, a softmax and a product one after another in a stream,
-- with pointwise work and copies between.
--   loop: references loop
--   op: references gpu_op
--   kernel: a name to print
--   nvtx_path: the range that most of its launches lie in
--   part: softmax, between (all work between the two products but the softmax) or product
--   backward: whether it belongs to the gradient of a softmax
--   duration_ns: how long it ran (ns)
create view unfused_attention as
with softened as (
  select loop
  from named_kernel
  where role = 'softmax'
  group by loop
  having sum(share) >= setting('least_softmax')
),
known as (
  select
    loop,
    name,
    min(kernel) as kernel,
    min(role) as role,
    min(format) as format,
    arg_max(nvtx_path, (total_ns, nvtx_path)) as nvtx_path,
    regexp_matches(name, '(?i)softmax\w*backward|backward\w*softmax') as backward
  from named_kernel
  where loop in (select loop from softened)
  group by loop, name
),
step as (
  select
    w.loop,
    coalesce(w.iteration, -1) as iteration,
    w.stream,
    w.op,
    w.kind,
    w.duration_ns,
    w.start,
    k.kernel,
    k.nvtx_path,
    k.role,
    k.format,
    k.backward,
    not (w.kind in ('memcpy', 'memset') or coalesce(k.role in ('pointwise', 'cast'), false)) as marks
  from loop_gpu_op w
  left join known k on k.loop = w.loop and k.name = w.name
  where w.class <> 'communication' and w.loop in (select loop from softened)
),
numbered as materialized (
  select
    *,
    sum(marks::integer) over (partition by loop, iteration, stream order by start, op) as place
  from step
),
-- Half-precision models that compute the scores in 32 bits cast before the first product and after the last one.
casting as (
  select
    loop,
    iteration,
    stream,
    place,
    bool_or(coalesce(role = 'cast', false)) as casts
  from numbered
  group by loop, iteration, stream, place
),
mark as (
  select
    *,
    lag(role) over s as role_before,
    lead(role) over s as role_after,
    lag(format) over s as format_before,
    lead(format) over s as format_after,
    lag(format, 2) over s as input_format,
    lead(format, 2) over s as output_format
  from numbered
  where marks
  window s as (partition by loop, iteration, stream order by start, op)
),
hit as (
  select
    m.loop,
    m.iteration,
    m.stream,
    m.place + away as place,
    away,
    backward
  from mark m
  cross join unnest([-1, 0, 1]) as around(away)
  left join casting b on b.loop = m.loop
    and b.iteration = m.iteration
    and b.stream = m.stream
    and b.place = m.place - 2
  left join casting a on a.loop = m.loop
    and a.iteration = m.iteration
    and a.stream = m.stream
    and a.place = m.place + 1
  where role = 'softmax'
    and role_before = 'product'
    and role_after = 'product'
    and (
      'half' in (format_before, format_after)
        and coalesce(format_before, 'half') = 'half'
        and coalesce(format_after, 'half') = 'half'
        or b.casts
        and a.casts
        and coalesce(input_format, 'half') = 'half'
        and coalesce(output_format, 'half') = 'half'
    )
)
select distinct
  n.loop,
  n.op,
  coalesce(n.kernel, n.kind) as kernel,
  n.nvtx_path,
  n.duration_ns,
  case when not n.marks then 'between' when h.away = 0 then 'softmax' else 'product' end as part,
  h.backward
from numbered n
join hit h on n.loop = h.loop and n.iteration = h.iteration and n.stream = h.stream and n.place = h.place
where n.kind <> 'memset' and (n.marks or h.away < 1);
