-- What a capture could have seen.
--   input_kind: nsys, ncu, torch or smi
--   name: the kind of evidence
--   state: recorded, not_recorded or unknown
--   how: how that is known
create view capability_state as
select
  i.kind as input_kind,
  c.name,
  c.state,
  c.how
from capability c
join input i on i.id = c.input;
