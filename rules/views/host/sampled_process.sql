-- A process whose Python stacks were sampled, now and then: that slows down Python itself, less than recording each
-- call.
--   process: references process
create view sampled_process as
select distinct t.process
from py_sample y
join thread t on t.id = y.thread
where t.process not in (select process from stacks_process);
