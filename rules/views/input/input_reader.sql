-- A thread that reads from files or sockets beside one that waits for input. Worker processes are not looked into.
--   loop: references loop
--   thread: references thread
--   read_share: part of the loop's time that it read, or waited at a socket for what it read next, 0 to 1
--   read_name: the function in which it read longest
create view input_reader as
with waiting as (
  select
    loop,
    process,
    sum(ns) as ns,
    min(start) as start,
    max("end") as "end"
  from (
    select
      loop,
      process,
      start,
      "end",
      "end" - start as ns
    from steady_interval
    where (loop, process) in (
      select (loop, process) from input_segment where not has_workers and 2 * waited_ns > length_ns
    )
  )
  group by loop, process
),
did as (
  select
    w.loop,
    w.ns as total_ns,
    o.thread,
    n.text,
    o.start,
    o."end",
    waits_for_others(n.text) and lead(receives_data(n.text)) over (partition by o.thread order by o.start) as listens
  from os_call o
  join thread t on t.id = o.thread
  join waiting w on w.process = t.process and o.start >= w.start and o."end" <= w."end"
  join name n on n.id = o.name
  where o.thread not in (select thread from input_segment)
    and (n.text = 'read' or waits_for_others(n.text) or reads_data(n.text) or handles_files(n.text))
),
filed as (
  select
    *,
    bool_or(handles_files(text)) over (partition by loop, thread) as has_files
  from did
)
select
  loop,
  thread,
  sum("end" - start) / any_value(total_ns) as read_share,
  arg_max(text, ("end" - start, text)) filter (where not listens) as read_name
from filed
where listens or reads_data(text) or text = 'read' and has_files
group by loop, thread;
