-- A kernel of a loop in which copies or collectives run behind kernels, with how much of them ran beside it.
--   op: references gpu_op
--   loop: references loop
--   name: the kernel's full name
--   short: its base name
--   grid: blocks
--   block: threads a block
--   duration_ns: how long it ran (ns)
--   copy_ns: time of copies to, from or between GPUs while it ran (ns)
--   communication_ns: time of collectives while it ran (ns)
create view kernel_copy_overlap as
with company as (
  select
    w.loop,
    w.device,
    w.start,
    w."end",
    w.class
  from transfer t
  join loop_gpu_op w on w.op = t.op
  where t.exposed_ns < t.duration_ns and t.direction in ('host_to_device', 'device_to_host', 'peer_to_peer')
  union all
  select
    loop,
    device,
    start,
    "end",
    class
  from loop_gpu_op
  where class = 'communication'
),
kernel as (
  select
    w.op,
    w.loop,
    w.device,
    w.name,
    w.short,
    w.start,
    w."end",
    w.duration_ns,
    coalesce(
      max(w."end") over (
        partition by w.device
        order by w.start, w.op
        rows between unbounded preceding and 1 preceding
      ) > w.start,
      false
    )
      or coalesce(lead(w.start) over (partition by w.device order by w.start, w.op) < w."end", false) as among_kernels
  from loop_gpu_op w
  where w.kind = 'kernel' and w.class = 'compute' and w.loop in (select loop from company)
),
beside as (
  select
    k.op,
    sum(least(k."end", c."end") - greatest(k.start, c.start)) filter (where c.class = 'copy') as copy_ns,
    sum(
      least(k."end", c."end") - greatest(k.start, c.start)
    ) filter (where c.class = 'communication') as communication_ns
  from kernel k
  join company c on c.device = k.device and c.start < k."end" and c."end" > k.start
  group by k.op
)
select
  k.op,
  k.loop,
  k.name,
  k.short,
  o.grid,
  o.block,
  k.duration_ns,
  coalesce(b.copy_ns, 0) as copy_ns,
  coalesce(b.communication_ns, 0) as communication_ns
from kernel k
join analysed_gpu_op o on o.id = k.op
left join beside b on b.op = k.op
where not k.among_kernels;
