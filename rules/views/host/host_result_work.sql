-- A copy around long work of the host on results of the GPU: an array is copied back, the host waits for it, works for
-- a while, and launches nothing before it has. An upload between that work and the next launch may carry what came of
-- it. Only of loops in which the GPU idles long meanwhile.
-- materialised: three rules and an edit look it up
--   op: the copy (references gpu_op)
--   api_call: the call that made it
--   loop: references loop
--   direction: device_to_host or host_to_device
--   bytes: how much it moved
--   lost_ns: GPU time in which nothing ran but the copy (ns)
--   work: the call that ended the host's work (references api_call)
--   work_ns: how long that work was (ns)
--   path: the innermost NVTX range of that work
create view host_result_work as
with work as (
  select
    api_call,
    loop,
    max(segment_ns) as work_ns,
    sum("end" - start) as idle_ns
  from idle_interval
  where category in ('idle_other', 'idle_sync')
    and doing = 'segment'
    and segment_ns >= setting('cpu_phase_ns')
    and leaf <> 'compiling'
    and idle_interval not in (select idle_interval from staged_upload)
    and idle_interval not in (select unnest(idle_intervals) from pool_return)
  group by api_call, loop
),
-- calls between two launches belong together
numbered as (
  select
    id,
    thread,
    seq,
    count_if(kind in ('launch', 'graph_launch'))
      over (partition by thread order by seq rows between unbounded preceding and 1 preceding)
      as launches
  from call
  where loop in (select loop from work)
),
copied as (
  select
    t.*,
    n.thread,
    n.seq,
    n.launches
  from transfer t
  join numbered n on n.id = t.api_call
  where t.direction in ('device_to_host', 'host_to_device') and t.bytes > setting('staged_bytes')
),
-- a wait for an event is for what came before it, which may have been copied long ago
waited as (
  select
    n.thread,
    n.seq,
    n.launches,
    a.seq as after
  from host_blocking_call b
  join numbered n on n.id = b.id
  left join sync s on s.api_call = b.id
  left join gpu_op o on o.id = s.after_op
  left join numbered a on a.id = o.api_call
  where b.waits
),
worked as (
  select
    w.*,
    n.thread,
    n.seq,
    n.launches,
    min(r.seq) as read
  from work w
  join numbered n on n.id = w.api_call
  join copied r on r.thread = n.thread and r.launches = n.launches and r.seq < n.seq
  -- without a wait it works on something else, or another thread on the results
  join waited b on b.thread = n.thread
    and b.launches = n.launches
    and b.seq >= r.seq
    and b.seq < n.seq
    and coalesce(b.after, r.seq) >= r.seq
  where r.direction = 'device_to_host'
  group by all
)
select
  c.op,
  c.api_call,
  c.loop,
  c.direction,
  c.bytes,
  c.exposed_ns as lost_ns,
  w.api_call as work,
  w.work_ns,
  h.path
from (
  select *
  from worked
  qualify sum(idle_ns) over (partition by loop) >= setting('result_work_share')
    * (select f.total_ns from loop_facts f where f.loop = worked.loop)
) w
join copied c on c.thread = w.thread
  and c.launches = w.launches
  and if(c.direction = 'device_to_host', c.seq >= w.read and c.seq < w.seq, c.seq >= w.seq)
left join host_segment h on h.api_call = w.api_call;
