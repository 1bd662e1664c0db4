-- What a rank of a job spends in collectives in an iteration.
--   member: references job_rank
--   step: 0 for the first iteration analysed
--   collectives: how many it ran
--   operation: the one that takes the longest to transfer
--   transfer_ns: time in them once the last rank had joined (ns)
--   exposed_ns: part of that in which its GPU computed nothing (ns)
--   wait_ns: time in which its GPU only waited for other ranks (ns)
create view job_exchange as
select
  w.member,
  w.step,
  count(*) as collectives,
  arg_max(c.operation, (c.transfer_ns, c.operation)) as operation,
  sum(c.transfer_ns) as transfer_ns,
  sum(w.exposed_ns - w.exposed_wait_ns) as exposed_ns,
  sum(w.exposed_wait_ns) as wait_ns
from job_wait w
join job_collective c on c."group" = w."group" and c."sequence" = w."sequence"
group by w.member, w.step;
