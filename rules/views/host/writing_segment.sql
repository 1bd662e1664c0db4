-- A long host segment in which a thread reads or writes files: most of its Python samples, a good part of its time in
-- calls of the operating system, or the name of its NVTX range says so.
-- materialised: two rules look it up
--   api_call: the call that ended it
create view writing_segment as
with sampled as (
  select
    c.api_call,
    count(*) filter (where writes_files(y.frames)) / count(*) as writing
  from call_sample c
  join py_sample y on y.id = c.sample
  where not c.inside and c.api_call in (select api_call from host_segment)
  group by c.api_call
),
called as (
  select
    h.api_call,
    sum(least(w."end", h."end") - w.start) / any_value(h."end" - h.start) as writing
  from (
    select
      c.thread,
      c.start,
      c."end"
    from os_call c
    join name n on n.id = c.name
    where writes_file(n.text) and c.thread in (select thread from host_segment)
  ) w
  asof join host_segment h on w.thread = h.thread and h.start <= w.start
  where w.start < h."end"
  group by h.api_call
)
select h.api_call
from host_segment h
left join sampled s using (api_call)
left join called c using (api_call)
where s.writing > setting('most_share')
  or c.writing >= setting('writing_share')
  or names_output(list_last(string_split(h.path, ' / ')));
