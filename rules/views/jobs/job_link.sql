-- How fast the collectives of a communicator are, beside those of other communicators with the same operation, message
-- and number of ranks: once the last rank has joined, which nothing but the way between them explains.
-- materialised: read by several rules
--   group: the communicator, as a dense number in the job
--   ranks: how many ranks it has
--   labels: these ranks
--   hosts: their hosts, where known
--   operation: all_reduce, all_gather, reduce_scatter, broadcast, send_recv or other
--   bytes: size of the message; null when unknown (B)
--   transfer_ns: how long one takes, typically (ns)
--   usual_ns: the same over the communicators alike, of two the faster one's (ns)
--   alike: how many communicators are alike
--   each: how many an iteration has
create view job_link as
with own as (
  select
    "group",
    operation,
    bytes,
    ranks,
    median(transfer_ns) as transfer_ns,
    count(*) / count(distinct step) as each
  from job_collective
  group by "group", operation, bytes, ranks
),
beside as (
  select
    *,
    quantile_disc(transfer_ns, 0.5) over w as usual_ns,
    count(*) over w as alike
  from own
  window w as (partition by operation, bytes, ranks)
),
named as (
  select
    g."group",
    list(r.label order by r.id) as labels,
    list(distinct r.host order by r.host) filter (r.host is not null) as hosts
  from job_group g
  join job_rank r on r.id = g.member
  group by g."group"
)
select
  b."group",
  b.ranks,
  n.labels,
  n.hosts,
  b.operation,
  b.bytes,
  b.transfer_ns,
  b.usual_ns,
  b.alike,
  b.each
from beside b
join named n using ("group");
