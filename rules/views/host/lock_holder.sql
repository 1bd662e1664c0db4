-- A Python sample of a thread that ran while another thread of its process waited for a lock.
--   time: when it was taken (ns)
--   thread: the thread that waited: references thread
--   other_thread: the thread that ran: references thread
--   file: the innermost file that is the user's own
--   line: the line in it
--   place: file and line, as a struct
--   function: the innermost function of the user's own that has a name
create view lock_holder as
with awake as (
  select
    y.time,
    y.thread,
    t.process,
    user_frame(y.frames) as frame,
    user_function(y.frames) as function
  from py_sample y
  join thread t on t.id = y.thread
  where not coalesce(contains(lower(y.state), 'wait'), false)
    and not coalesce(is_waiting_file(y.frames[1].file), false)
)
select
  a.time,
  w.thread,
  a.thread as other_thread,
  a.frame.file as file,
  a.frame.line as line,
  row(a.frame.file, a.frame.line)::struct(file varchar, line integer) as place,
  a.function
from awake a
asof join (
  select
    l.thread,
    l.start,
    l."end",
    t.process
  from lock_wait l
  join thread t on t.id = l.thread
) w on a.process = w.process
  and w.start <= a.time
where a.time < w."end" and a.thread <> w.thread and a.frame.file is not null;
