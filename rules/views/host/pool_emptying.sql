-- A call before or in which Python samples met a function that empties a framework's memory pool.
--   api_call: references api_call
create view pool_emptying as
select distinct s.api_call
from call_sample s
join py_sample y on y.id = s.sample
where empties_pool(y.frames);
