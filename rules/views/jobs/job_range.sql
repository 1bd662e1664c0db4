-- The NVTX range in which most of the reference rank's time lies, of what may make a rank late.
--   member: the reference rank (references job_rank)
--   cause: host, compute or copies
--   path: innermost NVTX range
--   api_calls: the calls that its GPU waited for, or that started its work, in the reference rank's own store
--   ns: that time, in an iteration (ns)
create view job_range as
select
  member,
  cause,
  path,
  api_calls,
  ns
from job_place;
