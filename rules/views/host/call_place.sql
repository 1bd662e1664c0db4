-- The innermost NVTX range each call was made in.
-- materialised: read by every rule that names a place
--   api_call: references api_call
--   path: the range's path; null outside every range
create view call_place as
select
  c.id as api_call,
  a.path
from analysed_api_call c
asof left join annotation_at a on c.thread = a.thread and a.time <= c.start
where c.id in (select id from call union all select api_call from loop_gpu_op);
