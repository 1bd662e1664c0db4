-- A call that tests whether a result holds some value, such as NaN, and reads the answer, where a program does so again
-- and again; or one before which the host writes down where an operation was called. Debugging modes do both for each
-- operation.
-- materialised: two rules and prices of read-backs look it up
--   loop: references loop
--   answer: references api_call: the call that reads the answer, for each of its test; null where none is read
--   api_call: references api_call: a call of the test
--   idle_ns: idle GPU time that follows from reading the answer, given to that call alone (ns)
--   most_idle_ns: the most that it may be without the profiler (ns)
create view value_check as
with launched as (
  select
    l.loop,
    c.id,
    c.thread,
    c.seq,
    l.name,
    lag(l.name) over (partition by c.thread order by c.seq) as name_before,
    lag(c.seq) over (partition by c.thread order by c.seq) as seq_before
  from launch l
  join call c on c.id = l.api_call
),
answered as (
  select
    b.loop,
    b.api_call as answer,
    b.idle_ns,
    b.most_idle_ns,
    c.thread,
    c.seq as last,
    if(compares_values(n.name_before), n.seq_before, n.seq) as first
  from blocking_call b
  join call c on c.id = b.api_call
  asof join launched n on n.thread = c.thread and n.seq < c.seq
  where b.read_bytes <= setting('value_check_bytes')
    and tests_any(n.name)
    and c.seq - n.seq <= setting('readback_range_calls')
),
often as (
  select a.loop
  from answered a
  group by a.loop
  having count(*) >= setting('value_checks') * (select count(*) from analysed_iteration i where i.loop = a.loop)
    and count(*) >= setting('value_check_share') * (select count(*) from launched n where n.loop = a.loop)
),
traced as (
  select
    l.loop,
    l.name
  from call_sample s
  join py_sample y on y.id = s.sample
  join launch l on l.api_call = s.api_call
  where not s.inside and l.loop in (select loop from often)
  group by l.loop, l.name
  having count(*) filter (where writes_traceback(y.frames)) >= setting('traceback_share') * count(*)
),
tested as (
  select
    a.loop,
    a.answer,
    c.id as api_call,
    if(c.id = a.answer, a.idle_ns, 0) as idle_ns,
    if(c.id = a.answer, a.most_idle_ns, 0) as most_idle_ns
  from answered a
  join call c on c.thread = a.thread and c.seq between a.first and a.last
  where a.loop in (select loop from often)
)
from tested
union all
select
  t.loop,
  null,
  l.api_call,
  0,
  0
from traced t
join launch l on l.loop = t.loop and l.name = t.name
where l.segment_ns >= setting('host_work_ns') and l.api_call not in (select api_call from tested);
