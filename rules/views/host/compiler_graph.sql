-- A call before or in which a compiler records graphs by itself: XLA, or torch.compile by the Python samples there.
-- Other
-- graphs are captured by the program.
--   api_call: references api_call
create view compiler_graph as
select distinct s.api_call
from call_sample s
join py_sample y on y.id = s.sample
where records_graphs(y.frames)
union
select id
from call
where kind = 'load' and exists (from framework_seen where framework = 'jax');
