-- A pause of a loop in which code is compiled or planned and then loaded: host time from what the thread had submitted
-- before to the end of each load. The kernel that is launched next tells what it is for.
-- materialised: two rules read it
--   loop: references loop
--   process: references process
--   start: when the pause began (ns)
--   ns: how long this takes (ns)
--   attention_ns: of that, before kernels of cuDNN's attention (ns)
--   cudnn_ns: of that, before kernels of cuDNN of any kind (ns)
create view pause_load as
with loaded as (
  select
    p.loop,
    p.process,
    p.thread,
    p.start,
    c.start as called,
    c."end" as returned
  from (
    select
      thread,
      start,
      "end"
    from api_call
    where name in (select id from name where loads_code(text))
  ) c
  asof join loop_pause p on c.thread = p.thread and p.start <= c.start
  where c.start < p."end"
),
submitted as (
  select
    id,
    thread,
    start,
    "end"
  from api_call
  where thread in (select thread from loaded)
    and name in (select id from name where api_kind(text) in ('launch', 'graph_launch', 'copy', 'set'))
),
stretch as (
  select
    l.loop,
    l.process,
    l.thread,
    l.start,
    greatest(l.start, s."end") as since,
    max(l.returned) as until
  from loaded l
  asof left join submitted s on s.thread = l.thread and s.start <= l.called
  group by all
),
launched as (
  select
    s.thread,
    s.start,
    n.text
  from submitted s
  join gpu_op o on o.api_call = s.id
  join name n on n.id = o.name
  where o.kind = 'kernel'
)
select
  t.loop,
  t.process,
  t.start,
  sum(t.until - t.since)::bigint as ns,
  coalesce(sum(t.until - t.since) filter (plans_attention(k.text)), 0)::bigint as attention_ns,
  coalesce(sum(t.until - t.since) filter (is_cudnn(k.text)), 0)::bigint as cudnn_ns
from stretch t
asof left join launched k on k.thread = t.thread and k.start >= t.until
group by t.loop, t.process, t.start;
