-- An NVTX push/pop range that was open while any span lasted, with its place in the nesting.
-- materialised: the path of every call is looked up in it
--   id: references nvtx_range
--   process: references process
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   label: the message without a turn's number
--   path: labels from the outermost range to this one, joined by ' / '
--   parent_path: the enclosing range's path
create view annotation as
with recursive message as (  -- a framework's annotation of one operator has no label of its own: it stands for its parent
    select r.id, r.parent, r.process, r.thread, r.start, r."end",
           case when not names_operator(n.text) then range_label(n.text) end as label
    from nvtx_range r join name n on n.id = r.name
    where r.kind = 'push_pop' and r.domain is null
      and r."end" > (select min(start) from span) and r.start < (select max("end") from span)
), pathed as (
    select id, process, thread, start, "end", label, label as path, null::varchar as parent_path
    from message where parent is null
    union all
    select m.id, m.process, m.thread, m.start, m."end", coalesce(m.label, p.label),
           case when m.label is null then p.path else concat_ws(' / ', p.path, m.label) end, p.path
    from message m join pathed p on m.parent = p.id
)
select * from pathed;

-- The innermost NVTX range of a thread from this moment on, until the next row.
-- materialised: looked up by time
--   thread: references thread
--   time: from when on (ns)
--   path: the innermost range's path; null outside every range
create view annotation_at as
select thread, t as time, first(path order by priority desc, path) as path
from (
    select thread, start as t, path, 1e6 + coalesce(length(path), 0) as priority from annotation
    union all
    select thread, "end", parent_path, coalesce(1e5 - length(parent_path), 1e5) from annotation
) group by thread, t;

-- The innermost NVTX range each call was made in.
-- materialised: read by every rule that names a place
--   api_call: references api_call
--   path: the range's path; null outside every range
create view call_place as
select c.id as api_call, a.path
from nearby_call c asof left join annotation_at a on c.thread = a.thread and a.time <= c.start
where c.id in (select id from call union all select api_call from work);
