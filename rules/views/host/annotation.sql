-- An NVTX push/pop range that was open while any steady_interval lasted, with its place in the nesting.
-- materialised: the path of every call is looked up in it
--   id: references nvtx_range
--   process: references process
--   thread: references thread
--   start: when it began (ns)
--   end: when it ended (ns)
--   label: the message without an iteration's number
--   path: labels from the outermost range to this one, joined by ' / '
--   parent_path: the enclosing range's path
create view annotation as
-- a framework's annotation of one operator has no label of its own: it stands for its parent
with recursive message as (
  select
    r.id,
    r.parent,
    r.process,
    r.thread,
    r.start,
    r."end",
    case when not names_operator(n.text) then range_label(n.text) end as label
  from nvtx_range r
  join name n on n.id = r.name
  where r.kind = 'push_pop'
    and r.domain is null
    and r."end" > (select min(start) from steady_interval)
    and r.start < (select max("end") from steady_interval)
),
pathed as (
  select
    id,
    process,
    thread,
    start,
    "end",
    label,
    label as path,
    null::varchar as parent_path
  from message
  where parent is null
  union all
  select
    m.id,
    m.process,
    m.thread,
    m.start,
    m."end",
    coalesce(m.label, p.label),
    case when m.label is null then p.path else concat_ws(' / ', p.path, m.label) end,
    p.path
  from message m
  join pathed p on m.parent = p.id
)
select *
from pathed;
