-- An outermost CUDA call that began before the last steady_interval's end. Columns as in api_call.
-- materialised: a long capture holds far more calls than are analysed
--   id: references api_call
--   start: when it began (ns)
--   end: when it returned (ns)
--   process: references process
--   thread: references thread
--   name: references name
--   recorded_before: Python functions and operators recorded since the call before it, 0 where none are
create view analysed_api_call as
select
  id,
  start,
  "end",
  process,
  thread,
  name,
  coalesce(recorded_before, 0) as recorded_before
from api_call
where parent is null and start < (select max("end") from steady_interval);
