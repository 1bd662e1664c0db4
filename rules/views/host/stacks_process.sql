-- A process that torch.profiler recorded with its Python stacks: every call of a function, which slows the host down.
--   process: references process
create view stacks_process as
select p.id as process
from process p
join input i on i.id = p.input
join capability c on c.input = i.id
where i.kind = 'torch' and c.name = 'python_calls' and c.state = 'recorded';
