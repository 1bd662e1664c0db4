-- A kernel of an optimizer that updates one parameter at a time: element-wise, and launched where an NVTX range or the
-- Python stack says so, or in an unbroken row with an `addcdiv`, the last step of Adam and its relatives.
-- materialised: read by two rules; planning it costs more than running it
--   op: references gpu_op
--   loop: references loop
--   iteration: references iteration
--   api_call: the call that started it, when traced
--   duration_ns: how long it ran (ns)
create view optimizer_op as
with named as (
  select
    r.thread,
    r.start,
    r."end"
  from nvtx_range r
  join name n on n.id = r.name
  where regexp_matches(lower(n.text), '^optimizer\.step#|(^|[^a-z])(optim(izer|iser)?|opt[ _.:-]?step)([^a-z]|$)')
    and not contains(n.text, 'zero_grad')
),
-- the stack before a call and the one after it
sampled as (
  select
    y.thread,
    y.time,
    coalesce(len(list_filter(y.frames, lambda f: starts_with(f.function, '_single_tensor_'))) > 0, false) as updating
  from py_sample y
  where y.time >= (select min(start) from steady_interval) and y.thread in (select distinct thread from call)
),
stretch as (
  select
    thread,
    time as start,
    lead(time) over w as "end"
  from sampled
  window w as (partition by thread order by time)
  qualify updating and lead(updating) over w
),
reported as (
  select c.id
  from call c
  asof join named r on c.thread = r.thread and r.start <= c.start
  where c.start < r."end"
  union
  select c.id
  from call c
  asof join stretch r on c.thread = r.thread and r.start <= c.start
  where c.start < r."end"
),
adam as (
  select distinct
    e.stream,
    e.iteration,
    e.run
  from elementwise_op e
  join name n on n.id = e.name
  where contains(n.text, 'addcdiv')
)
select
  e.op,
  e.loop,
  e.iteration,
  e.api_call,
  e.duration_ns
from elementwise_op e
where e.api_call in (select id from reported)
  or (e.stream, e.iteration, e.run) in (
    select
      stream,
      iteration,
      run
    from adam
  );
