-- The functions called, each with its kind.
-- materialised: classifying a name once is cheaper than once a call
--   id: references name
--   text: the function
--   kind: see the macro api_kind
--   captures: true where a stream begins to be captured into a graph, false where that ends; else null
create view api_name as
select
  n.id,
  n.text,
  api_kind(n.text) as kind,
  case
    when regexp_matches(n.text, '^cu(da)?StreamBeginCapture') then true
    when regexp_matches(n.text, '^cu(da)?StreamEndCapture') then false
  end as captures
from name n
where n.id in (select distinct name from api_call);
