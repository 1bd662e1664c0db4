-- GPU idle time in which the host copied an array into pinned memory: what is submitted next is its upload, and large.
-- JAX hands host arrays to threads of its own, for which the launching thread waits; CuPy copies them itself, by the
-- Python stack. Only of loops where that takes long.
-- materialised: three rules look it up
--   idle_interval: references idle_interval
--   loop: references loop
--   op: the upload (references gpu_op)
--   api_call: the call that made it
--   bytes: how much it moved
--   waited_ns: length of the idle time (ns)
--   other_thread: whether another thread copied
create view staged_upload as
with submitted as (
  select
    c.id,
    c.loop,
    c.start,
    a.thread <> c.thread as from_other_thread
  from call c
  join api_call a on a.id = c.id
  where c.kind in ('launch', 'graph_launch', 'copy', 'set')
    and c.loop in (
      select x.loop
      from call x
      join api_call y on y.id = x.id
      where x.kind = 'copy' and x.thread <> y.thread
    )
),
-- the calls that CuPy made after it had copied the array, with the upload that follows
copied as (
  select
    c.id,
    u.op,
    u.api_call,
    u.bytes
  from (
    select s.api_call as id
    from call_sample s
    join py_sample y on y.id = s.sample
    where exists (from framework_seen where framework = 'cupy') and not s.inside
    group by s.api_call
    -- the program's own work may come before the copy, and take longer
    having count(*) filter (
      contains(y.frames[1].file, '/cupy/') and y.frames[1].function in ('asarray', 'array', 'asanyarray', 'set')
    ) > setting('most_share') * count(*)
  ) d
  join call c on c.id = d.id
  asof join (
    select
      t.op,
      t.api_call,
      t.bytes,
      a.thread,
      a.seq
    from transfer t
    join call a on a.id = t.api_call
    where t.direction = 'host_to_device' and not t.pageable and t.bytes >= setting('staged_bytes')
  ) u on c.thread = u.thread
    and c.seq <= u.seq
  where u.seq - c.seq <= setting('staged_calls')
),
staged as (
  select
    i.idle_interval,
    i.loop,
    u.op,
    u.api_call,
    u.bytes,
    i."end" - i.start as waited_ns,
    false as other_thread
  from idle_interval i
  join copied u on u.id = i.api_call
  where i.doing = 'segment' and i.leaf <> 'compiling'
  union all
  select
    i.idle_interval,
    i.loop,
    t.op,
    s.id,
    t.bytes,
    i."end" - i.start,
    true
  from idle_interval i
  asof join submitted s on i.loop = s.loop and i.start <= s.start
  join transfer t on t.api_call = s.id
  where i.doing = 'segment'
    and i.leaf = 'blocked'
    and s.from_other_thread
    and t.direction = 'host_to_device'
    and not t.pageable
    and t.bytes >= setting('staged_bytes')
)
select s.*
from staged s
join loop_facts f on f.loop = s.loop
qualify sum(s.waited_ns) over (partition by s.loop) >= setting('staged_share') * f.total_ns;
