-- A host segment in which a thread that only copies prepares what it uploads next, while the thread that launches waits
-- for it: the upload begins before that wait ends.
-- materialised: two views and a rule look it up by call
--   api_call: the call that ended the segment
--   waiting_call: the call that ended the wait of the launching thread
--   waited_ns: how long that thread waited (ns)
create view fed_input as
with launching as (
  select distinct thread from call where kind in ('launch', 'graph_launch')
),
waiting as (
  select
    h.api_call,
    h.loop,
    t.process,
    h.start,
    h."end"
  from host_segment h
  join thread t on t.id = h.thread
  where h.fetches_input and h.thread in (select thread from launching)
),
uploading as (
  select distinct c.thread
  from analysed_gpu_op o
  join call c on c.id = o.api_call
  where o.kind = 'memcpy' and o.copy_kind = 'host_to_device' and c.thread not in (select thread from launching)
)
select
  s.api_call,
  w.api_call as waiting_call,
  w."end" - w.start as waited_ns
from (
  select
    h.api_call,
    h.loop,
    t.process,
    h."end"
  from host_segment h
  join thread t on t.id = h.thread
  where h.thread in (select thread from uploading)
) s
asof join waiting w on w.loop = s.loop and w.process = s.process and w.start <= s."end"
where w."end" >= s."end";
