-- A copy or rearrangement of data within the GPU: a device-to-device copy, or a kernel that only moves data. Reading
-- rows by an index is work, as of an embedding; but not where about as many rows are written back by one, nor where
-- they are copied for a kernel that can read them where they are: one of the program's own, or attention.
--   op: references gpu_op
--   loop: references loop
--   path: innermost NVTX range
--   short: the kernel's base name, or device-to-device copy
--   bytes: size, of copies (B)
--   duration_ns: how long it took (ns)
create view data_move as
with indexing as (
  select
    w.op,
    w.loop,
    gathers_rows(n.text) as gathers,
    w.duration_ns
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join name n on n.id = o.name
  where w.class = 'compute' and (gathers_rows(n.text) or scatters_rows(n.text))
),
written_back as (
  select loop
  from indexing
  group by loop
  having least(
    coalesce(sum(duration_ns) filter (gathers), 0),
    coalesce(sum(duration_ns) filter (not gathers), 0)
  ) >= setting('written_back_share') * sum(duration_ns)
),
ordered as (
  select
    w.op,
    o.name,
    w.op in (select op from indexing where gathers) as gathers,
    last_value(
      case when w.op not in (select op from indexing where gathers) then o.name end ignore nulls
    ) over (partition by w.stream order by w.start desc, w.op desc) as next
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  where w.class = 'compute'
    and w.stream in (select s.stream from analysed_gpu_op s where s.id in (select op from indexing where gathers))
),
for_reader as (
  select d.op
  from ordered d
  join name n on n.id = d.next
  where d.gathers and (kernel_role(n.text) = 'attention' or not is_library_kernel(n.text))
)
select
  w.op,
  w.loop,
  p.path,
  case when w.kind = 'memcpy' then 'device-to-device copy' else w.short end as short,
  o.bytes,
  w.duration_ns
from analysed_gpu_op o
join loop_gpu_op w on w.op = o.id
left join call_place p on p.api_call = w.api_call
where (o.kind = 'memcpy' and o.copy_kind = 'device_to_device')
  or (
    o.kind = 'kernel'
      and o.name in (select id from name where id in (select name from analysed_gpu_op) and moves_data(text))
  )
  or o.id in (select op from indexing where loop in (from written_back))
  or o.id in (select op from for_reader);
