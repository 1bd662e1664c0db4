-- A process that runs Python, by its sampled stacks: recorded, the host takes longer between calls as well. Those whose
-- every call torch.profiler recorded are counted apart.
--   process: references process
create view python_process as
select distinct t.process
from py_sample y
join thread t on t.id = y.thread
where t.process not in (select process from stacks_process);
