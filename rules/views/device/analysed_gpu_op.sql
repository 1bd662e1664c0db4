-- A GPU operation that began or ended while any steady_interval lasted. Columns as in gpu_op.
-- materialised: a long capture holds far more operations than are analysed
--   id: references gpu_op
--   start: when it began (ns)
--   end: when it ended (ns)
--   device: references device
--   process: references process
--   stream: references stream
--   kind: kernel, memcpy, memset or graph
--   name: references name
--   api_call: the outermost call that started it, when traced
--   bytes: bytes copied or set (B)
--   copy_kind: direction of a copy
--   src_kind: kind of memory read
--   dst_kind: kind of memory written
--   grid: blocks in the grid
--   block: threads in a block
create view analysed_gpu_op as
select
  id,
  start,
  "end",
  device,
  process,
  stream,
  kind,
  name,
  api_call,
  bytes,
  copy_kind,
  src_kind,
  dst_kind,
  grid,
  block
from gpu_op
where "end" > start
  and "end" > (select min(start) from steady_interval)
  and start < (select max("end") from steady_interval);
