-- An outermost CUDA call, anywhere in the capture.
--   name: the function
--   duration_ns: how long it took (ns)
create view api_call_outermost as
select
  k.text as name,
  a."end" - a.start as duration_ns
from api_call a
join api_name k on k.id = a.name
where a.parent is null;
