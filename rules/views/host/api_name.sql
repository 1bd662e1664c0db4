-- The functions called, each with its kind.
-- materialised: classifying a name once is cheaper than once a call
--   id: references name
--   text: the function
--   kind: see the macro api_kind
create view api_name as
select
  n.id,
  n.text,
  api_kind(n.text) as kind
from name n
where n.id in (select distinct name from api_call);
