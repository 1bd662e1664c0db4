-- What an iteration would gain if the ranks that are late did no more than the others: all others wait for them at
-- least that long, with idle GPUs. A row for each kind of lateness and iteration.
-- materialised: read by several rules
--   kind: rank (late all the time), host (all ranks of a host are late) or degrades
--   step: 0 for the first iteration analysed
--   gain_ns: the time that goes (ns)
create view job_gain as
with slow as (
  select
    member,
    case when degrades then 'degrades' when host_late then 'host' else 'rank' end as kind
  from job_late
  where degrades or late
),
kinds as (
  select distinct kind from slow
),
total as (
  select count(*) as n from job_rank
),
-- a communicator of all ranks: between two of its collectives the slowest rank sets the pace
met as (
  select
    k.kind,
    w.step,
    w."group",
    w."sequence",
    min(w.exposed_wait_ns) as ns
  from kinds k
  cross join job_wait w
  join job_collective c on c."group" = w."group" and c."sequence" = w."sequence"
  cross join total t
  anti join slow s on s.kind = k.kind and s.member = w.member
  where c.ranks = t.n
  group by k.kind, w.step, w."group", w."sequence"
),
whole as (
  select
    kind,
    step,
    sum(ns) as gain_ns
  from met
  group by kind, step
),
-- without one, ranks wait for one another along several communicators
apart as (
  select
    kind,
    step,
    min(ns) as gain_ns
  from (
    select
      k.kind,
      w.step,
      w.member,
      sum(w.exposed_wait_ns) as ns
    from kinds k
    cross join job_wait w
    anti join slow s on s.kind = k.kind and s.member = w.member
    group by k.kind, w.step, w.member
  )
  where not exists (from whole)
  group by kind, step
)
from whole
union all
from apart;
