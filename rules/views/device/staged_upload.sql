-- GPU idle time in which the launching thread was blocked while another thread of the framework copied a host array
-- into
-- pinned memory: what is submitted next is its upload, and large. JAX hands host arrays to such threads. Only of loops
-- where that takes long.
-- materialised: three rules look it up
--   idle_interval: references idle_interval
--   loop: references loop
--   op: the upload (references gpu_op)
--   api_call: the call that made it
--   bytes: how much it moved
--   waited_ns: length of the idle time (ns)
create view staged_upload as
with submitted as (
  select
    c.id,
    c.loop,
    c.start,
    a.thread <> c.thread as by_another
  from call c
  join api_call a on a.id = c.id
  where c.kind in ('launch', 'graph_launch', 'copy', 'set')
    and c.loop in (
      select x.loop
      from call x
      join api_call y on y.id = x.id
      where x.kind = 'copy' and x.thread <> y.thread
    )
)
select
  i.idle_interval,
  i.loop,
  t.op,
  s.id as api_call,
  t.bytes,
  i."end" - i.start as waited_ns
from idle_interval i
asof join submitted s on i.loop = s.loop and i.start <= s.start
join transfer t on t.api_call = s.id
join loop_facts f on f.loop = i.loop
where i.doing = 'segment'
  and i.leaf = 'blocked'
  and s.by_another
  and t.direction = 'host_to_device'
  and not t.pageable
  and t.bytes >= setting('staged_bytes')
qualify sum(i."end" - i.start) over (partition by i.loop) >= setting('staged_share') * f.total_ns;
