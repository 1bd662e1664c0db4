-- How much time all calls of one function took, anywhere in the capture.
-- materialised: sums over all calls are not cheap
--   name: the function
--   kind: see the macro api_kind
--   calls: how many
--   total_ns: their summed duration (ns)
create view api_use as
select
  k.text as name,
  k.kind,
  u.calls,
  u.total_ns
from (
  select
    name,
    count(*) as calls,
    cast(sum("end" - start) as bigint) as total_ns
  from api_call
  where parent is null
  group by name
) u
join api_name k on k.id = u.name;
