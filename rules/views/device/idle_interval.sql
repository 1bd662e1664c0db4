-- A part of a gap with its cause. Idle time after a call that held the host follows from it for as long as it took:
-- without it, everything the host did later would have happened earlier by that much. For waits see sync_idle_factor.
-- materialised: the budget and every price of idle time rest on it
--   idle_interval: dense identifier
--   gap: references gap
--   loop: references loop
--   iteration: references iteration
--   device: references device
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   doing: see host_during_gap
--   api_call: the call the thread was in, or was heading for
--   call_kind: that call's kind
--   segment_ns: how long the whole host segment before that call was (ns)
--   cause_call: the earlier call that held the host and from which this interval follows
--   cause_kind: its kind
--   input: whether the host segment fetched input, by its Python stack or its NVTX range, or prepared what another
--    thread waited for
--   leaf: its place in the time tree: submitting, host_work, compiling, allocating, input, blocked, sync, dependency or
--    outside
--   category: idle_launch, idle_sync, idle_input, idle_allocation or idle_other: its place in the budget, by the macro
--    budget_category
create view idle_interval as
-- calls with no launch between them hold the host together: a read-back, then the wait for it; the longest names it
with launching as (
  select
    thread,
    seq,
    start
  from call
  where kind in ('launch', 'graph_launch')
),
held as (
  select
    h.thread,
    t.iteration,
    l.seq as launched,
    max(h."end") as "end",
    arg_max(h.id, (h."end" - h.start, h.id)) as id,
    arg_max(h.kind, (h."end" - h.start, h.id)) as kind,
    cast(
      sum((h."end" - h.start) * case when h.waits then coalesce(w.factor, 1) else 1 end - coalesce(i.ns, 0)) as bigint
    ) as reach_ns
  from host_blocking_call h
  left join sync_idle_factor w using (loop)
  -- the GPU's idle time inside the call is lost to it already
  left join (
    select
      api_call,
      sum("end" - start) as ns
    from host_during_gap
    where doing = 'call'
    group by api_call
  ) i on i.api_call = h.id
  asof left join launching l on h.thread = l.thread and l.start <= h.start
  join call t on t.id = h.id
  -- it is as long as the copy, and the host knows no more after it
  where not h.sends
  group by h.thread, t.iteration, l.seq
),
-- the longest of an iteration's waits, and all of them together
longest as (
  select
    thread,
    iteration,
    arg_max(id, reach_ns) as id,
    arg_max(kind, reach_ns) as kind,
    arg_max(launched, reach_ns) as launched,
    sum(reach_ns) as reach_ns
  from held
  group by thread, iteration
),
-- by the end of the next iteration the host has run ahead again, or something else keeps it from that
reaching as (
  select
    h.*,
    sum(h.reach_ns) over (partition by h.thread, h.iteration order by h."end") as iteration_reach_ns,
    n."end" as iteration_end,
    n.until,
    b.id as earlier,
    b.kind as earlier_kind,
    b.launched as earlier_launched,
    coalesce(b.reach_ns, 0) as earlier_reach_ns
  from held h
  left join (
    select
      iteration,
      "end",
      coalesce(lead("end") over (partition by loop, process order by start), "end") as until,
      lag(iteration) over (partition by loop, process order by start) as before
    from analysed_iteration
  ) n on n.iteration = h.iteration
  left join longest b on b.thread = h.thread and b.iteration = n.before
),
waited as (
  select
    r.*,
    r."end" - r.start as ns,
    b.id as wait,
    b.kind as wait_kind,
    b.reach_ns as wait_ns,
    b.iteration_reach_ns,
    b.iteration_end,
    b.until,
    b.earlier,
    b.earlier_kind,
    b.earlier_reach_ns,
    l.seq > coalesce(b.launched, -1) as queued,
    l.seq > coalesce(b.earlier_launched, -1) as earlier_queued,
    r.doing = 'segment' and r.segment_ns >= setting('cpu_phase_ns') as phase,
    sum(r."end" - r.start) over (partition by r.device, b.id order by r.start, r."end") as so_far,
    sum(r."end" - r.start)
      over (partition by r.device, r.thread, b.iteration order by r.start, r."end")
      as iteration_so_far
  from host_during_gap r
  asof left join reaching b on r.thread = b.thread and b."end" <= r.start
  asof left join launching l on r.thread = l.thread and l.start <= r.start
),
-- what waits left over when idle time begins: their reach less the idle time since, never less than nothing
balance as (
  select
    device,
    thread,
    t,
    is_idle,
    sum(ns) over (partition by device, thread order by t, is_idle) as ns
  from (
    select
      device,
      thread,
      start as t,
      true as is_idle,
      -ns as ns
    from waited
    union all
    select
      d.device,
      h.thread,
      h."end",
      false,
      h.reach_ns
    from held h
    join (
      select distinct
        device,
        thread
      from waited
    ) d using (thread)
  )
),
left_over as (
  select
    device,
    thread,
    t as start,
    lag(ns, 1, 0) over (w) - least(0, min(ns) over (w rows between unbounded preceding and 1 preceding)) as ns
  from balance
  window w as (partition by device, thread order by t, is_idle)
  qualify is_idle
),
-- what began later than that follows from something else; a phase of the host may be reached from the iteration
-- before
reached as (
  select
    w.* exclude (wait, wait_kind, until, queued, iteration_end, earlier, earlier_kind, earlier_queued),
    case
      when w.phase
        then least(coalesce(o.ns, 0), w.iteration_reach_ns + if(w.start < w.iteration_end, w.earlier_reach_ns, 0))
      else w.iteration_reach_ns - (w.iteration_so_far - w.ns)
    end as left_ns,
    w.phase and w.iteration_reach_ns < least(w.ns, left_ns) as from_earlier,
    case when from_earlier then w.earlier when w.start < w.until then w.wait end as wait,
    case when from_earlier then w.earlier_kind when w.start < w.until then w.wait_kind end as wait_kind,
    if(from_earlier, w.earlier_queued, w.queued) as queued
  from waited w
  left join left_over o on o.device = w.device and o.thread = w.thread and o.start = w.start
),
-- the part within the wait's shadow, then the part beyond it
split as (
  select
    *,
    case
      -- queued behind a host function, it would have waited for that without any wait of the host
      when wait is null or doing = 'latency' and gap in (select gap from host_function_gap) then 0
      else cast(greatest(0, least(ns, greatest(wait_ns - (so_far - ns), left_ns))) as bigint)
    end as shadow
  from reached
),
parts as (
  select
    * exclude (wait, wait_kind, start, "end"),
    start,
    start + shadow as "end",
    wait as cause_call,
    wait_kind as cause_kind
  from split
  where shadow > 0
  union all
  select
    * exclude (wait, wait_kind, start, "end"),
    start + shadow,
    "end",
    null,
    null
  from split
  where shadow < ns
),
-- a small value is read in two calls, a copy and the wait for it: neither would be made without the other
read_back as (
  select
    unnest([b.id, w.id]) as api_call,
    w.id as wait
  from host_blocking_call h
  join call w on w.id = h.id
  join call b on b.thread = w.thread and b.seq = w.seq - 1
  join (
    select distinct api_call from analysed_gpu_op where kind = 'memcpy' and copy_kind = 'device_to_host'
  ) o on o.api_call = b.id
  where w.kind = 'sync' and w.start - b."end" <= setting('host_work_ns')
),
placed as (
  select
    cast(row_number() over (order by p.gap, p.start, p."end") - 1 as integer) as idle_interval,
    p.gap,
    p.loop,
    t.iteration,
    p.device,
    p.thread,
    p.start,
    p."end",
    p.doing,
    p.api_call,
    p.call_kind,
    p.segment_ns,
    p.cause_call,
    p.cause_kind,
    r.wait,
    coalesce(i.fetches_input, false) or f.api_call is not null as input,
    s.submission,
    case
      when p.doing = 'call' and p.api_call in (select api_call from first_call) then 'compiling'
      when p.doing = 'call' and p.call_kind in ('alloc', 'free', 'host_alloc', 'pool') then 'allocating'
      when p.doing = 'call' and p.call_kind in ('load', 'context') then 'compiling'
      when p.doing = 'segment' and input then 'input'
      -- a phase of the host right after a wait may need what was waited for; a later one is only not overlapped
      when p.phase and not coalesce(p.queued and p.cause_kind in ('sync', 'copy'), false) then 'working'
      when p.cause_kind in ('alloc', 'free', 'host_alloc') then 'allocating'
      when p.cause_kind in ('sync', 'copy') then 'sync'
      when p.doing = 'call'
        and p.api_call in (select id from host_blocking_call)
        and p.api_call is distinct from g.next_call then 'sync'
      when p.doing = 'latency' and p."end" - p.start >= setting('dependency_ns') then 'dependency'
      when p.doing = 'segment' and coalesce(s.delayed, p.segment_ns >= setting('host_work_ns')) then 'working'
      when p.doing = 'call' and s.delayed and s.loads and p.api_call <> s.submission then 'working'
      when r.wait is not null then 'reading'
      else 'submitting'
    end as part,
    coalesce(s.loads, false) as loads,
    p.doing = 'segment' and coalesce(i.blocked_ns >= setting('blocked_share') * p.segment_ns, false) as blocked,
    p.api_call is null and g.next_op is null as last
  from parts p
  join gap g on g.gap = p.gap
  left join host_segment i on i.api_call = p.api_call
  left join fed_input f on f.api_call = p.api_call
  left join submission s on s.api_call = p.api_call
  left join read_back r on r.api_call = p.api_call and p.doing <> 'latency'
  asof left join (
    select
      iteration,
      process,
      start
    from analysed_iteration
  ) t on p.process = t.process
    and t.start <= p.start
),
named as (
  select
    *,
    case
      when part = 'reading' then 'sync'
      when part <> 'working' then part
      when loads then 'compiling'
      when blocked then 'blocked'
      when last then 'outside'
      else 'host_work'
    end as leaf
  from placed
)
select
  * exclude (submission, part, loads, blocked, last, wait) replace (
    if(part = 'reading', wait, cause_call) as cause_call,
    if(part = 'reading', 'sync', cause_kind) as cause_kind
  ),
  budget_category(leaf) as category
from named;
