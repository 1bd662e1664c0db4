-- An iteration of a loop, warm-up included.
--   loop: references loop
--   ordinal: 0 for the first iteration in its process
--   duration_ns: how long it took (ns)
--   in_steady_state: false for warm-up iterations
--   analysed: false for those after enough of them; how long these took is known from the host alone, which may run
--    ahead
create view iteration_all as
select
  loop,
  ordinal,
  "end" - start as duration_ns,
  in_steady_state,
  analysed
from iteration;
