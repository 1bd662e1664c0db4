-- The phase of the iteration that a call was made in, whichever thread of the process made it.
-- materialised: joins calls with phases once
--   api_call: references api_call
--   loop: references loop
--   path: the NVTX range's path; null where the phase is a line
--   file: the source file of the line; null where the phase is an NVTX range
--   line: the line in it
--   function: what the line calls
create view call_phase as
select
  c.id as api_call,
  c.loop,
  p.path,
  p.file,
  p.line,
  p.function
from call c
asof join phase_at p on p.loop = c.loop and p.process = c.process and p.time <= c.start
where p.path is not null or p.line is not null;
