-- What a capture could have seen.
--   input_kind: nsys or ncu
--   name: the kind of evidence
--   state: recorded, not_recorded or unknown
--   how: how that is known
create view evidence as
select i.kind as input_kind, c.name, c.state, c.how from capability c join input i on i.id = c.input;

-- How complete the capture is. One row.
--   ops: GPU operations that a call starts: those inside graphs and unified memory's moves are not
--   orphans: of those, operations without the call that started them
--   compared: operations whose start was compared with their call's: those of the analysed turns
--   early: of those, operations that begin before their call: the clocks disagree
create view capture_quality as
select o.ops, o.orphans, e.compared, e.early
from (select count(*) as ops, count(*) filter (where api_call is null) as orphans from gpu_op
      where graph_node is null and not starts_with(coalesce(copy_kind, ''), 'unified')) o, (
    select count(*) as compared, count(*) filter (where a.start > n.start) as early
    from nearby_op n join nearby_call a on a.id = n.api_call
) e;

-- A turn of a loop, warm-up included.
--   loop: references loop
--   ordinal: 0 for the first turn in its process
--   duration_ns: how long it took (ns)
--   in_steady_state: false for warm-up turns
--   analysed: false for those after enough of them; how long these took is told by the host, which may run ahead
create view every_turn as
select loop, ordinal, "end" - start as duration_ns, in_steady_state, analysed from iteration;

-- What the start-up of all processes consisted of. One row.
--   recorded_ns: time recorded, over all processes (ns)
--   cold_ns: of that, before the first steady turn (ns)
--   upload_bytes: bytes copied to the GPU in it (B)
--   upload_ns: time of those copies on the GPU (ns)
--   pageable_share: part of those bytes that came from pageable memory, 0 to 1
--   frees: calls that freed device memory in it
--   free_ns: time in those calls (ns)
create view start_up as
with cold as (
    select process, start, "end" from "window" where kind = 'cold_start' and "end" > start
), upload as (
    select coalesce(sum(o.bytes), 0) as bytes, coalesce(sum(o."end" - o.start), 0) as ns,
           coalesce(sum(o.bytes) filter (where o.src_kind = 'pageable'), 0) as pageable
    from gpu_op o join cold c on c.process = o.process and o.start >= c.start and o.start < c."end"
    where o.copy_kind = 'host_to_device'
), freed as (
    select count(*) as frees, coalesce(sum(duration_ns), 0) as ns from setup_call where kind = 'free' and phase = 'cold_start'
)
select (select sum("end" - start) from "window") as recorded_ns, (select sum("end" - start) from cold) as cold_ns,
       u.bytes as upload_bytes, u.ns as upload_ns, u.pageable / greatest(u.bytes, 1) as pageable_share, f.frees, f.ns as free_ns
from upload u, freed f;
