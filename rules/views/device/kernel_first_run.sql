-- When a process ran a kernel for the first time: right before, the driver may have loaded its code.
--   process: references process
--   name: references name
--   start: when that run began on the GPU (ns)
create view kernel_first_run as
select
  process,
  name,
  min(start) as start
from gpu_op
where kind = 'kernel'
group by process, name;
