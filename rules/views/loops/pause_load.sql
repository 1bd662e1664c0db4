-- A pause of a loop in which code is compiled or planned and then loaded: host time from the thread's last call that
-- submits, waits or allocates to the end of each load where cuDNN plans an operation, else the loads alone. The kernel
-- that is launched next tells which. Other code in a pause in which some kernel runs for the first time does not count.
-- materialised: two rules read it
--   loop: references loop
--   process: references process
--   start: when the pause began (ns)
--   ns: how long this takes (ns)
--   attention_ns: of that, before kernels of cuDNN's attention (ns)
--   other_cudnn_ns: of that, before cuDNN's other kernels (ns)
create view pause_load as
with loaded as (
  select
    p.loop,
    p.process,
    p.thread,
    p.start,
    p."end" + p.iteration_ns as until,
    c.start as called,
    c."end" as returned
  from (
    select
      thread,
      start,
      "end"
    from api_call
    where parent is null and name in (select id from name where loads_code(text))
  ) c
  asof join loop_pause p on c.thread = p.thread and p.start <= c.start
  where c.start < p."end"
),
-- the other calls of these pauses, and those right after them
met as (
  select
    c.id,
    c.thread,
    c.start,
    c."end",
    c.name
  from (
    select
      id,
      thread,
      start,
      "end",
      name
    from api_call
    where parent is null
      and thread in (select thread from loaded)
      and name in (select id from name where api_kind(text) not in ('load', 'context', 'other'))
  ) c
  asof join (
    select distinct
      thread,
      start,
      until
    from loaded
  ) p on c.thread = p.thread
    and p.start <= c.start
  where c.start <= p.until
),
stretch as (
  select
    l.loop,
    l.process,
    l.thread,
    l.start,
    l.until as at_last,
    greatest(l.start, m."end") as since,
    max(l.returned) as until,
    sum(l.returned - l.called) as loading_ns
  from loaded l
  asof left join met m on m.thread = l.thread and m.start <= l.called
  group by all
),
launched as (
  select
    m.thread,
    m.start,
    min(n.text) as text
  from met m
  join gpu_op o on o.api_call = m.id
  join name n on n.id = o.name
  where o.kind = 'kernel'
  group by m.thread, m.start
),
known as (
  select
    t.loop,
    t.process,
    t.start,
    coalesce(k.start <= t.at_last and is_cudnn(k.text), false) as cudnn,
    cudnn and plans_attention(k.text) as attention,
    if(cudnn, t.until - t.since, t.loading_ns) as ns
  from stretch t
  asof left join launched k on k.thread = t.thread and k.start >= t.until
  where t.until > t.since
)
select
  loop,
  process,
  start,
  sum(ns)::bigint as ns,
  coalesce(sum(ns) filter (attention), 0)::bigint as attention_ns,
  coalesce(sum(ns) filter (cudnn and not attention), 0)::bigint as other_cudnn_ns
from known
where cudnn or (loop, process, start) not in (select (loop, process, start) from pause_first_use)
group by loop, process, start;
