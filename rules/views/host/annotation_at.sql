-- The innermost NVTX range of a thread from this moment on, until the next row.
-- materialised: looked up by time
--   thread: references thread
--   time: from when on (ns)
--   path: the innermost range's path; null outside every range
create view annotation_at as
select
  thread,
  t as time,
  first(path order by priority desc, path) as path
from (
  select
    thread,
    start as t,
    path,
    1e6 + coalesce(length(path), 0) as priority
  from annotation
  union all
  select
    thread,
    "end",
    parent_path,
    coalesce(1e5 - length(parent_path), 1e5)
  from annotation
)
group by thread, t;
