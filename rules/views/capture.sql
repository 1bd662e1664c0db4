-- What a capture could have seen.
--   input_kind: nsys or ncu
--   name: the kind of evidence
--   state: recorded, not_recorded or unknown
--   how: how that is known
create view evidence as
select i.kind as input_kind, c.name, c.state, c.how from capability c join input i on i.id = c.input;

-- How complete the capture is. One row.
--   ops: GPU operations outside graphs
--   orphans: of those, operations without the call that started them
--   early: of those, operations that begin before their call: the clocks disagree
create view capture_quality as
select count(*) as ops, count(*) filter (where o.api_call is null) as orphans, count(*) filter (where a.start > o.start) as early
from gpu_op o left join api_call a on a.id = o.api_call where o.graph_node is null;

-- A turn of a loop, warm-up included.
--   loop: references loop
--   ordinal: 0 for the first turn in its process
--   duration_ns: how long it took (ns)
--   in_steady_state: false for warm-up turns
create view every_turn as
select loop, ordinal, "end" - start as duration_ns, in_steady_state from iteration;
