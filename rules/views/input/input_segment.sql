-- A host segment that fetched input while a GPU was idle, and how its thread spent it.
-- materialised: the next view reads it several times
--   api_call: the call that ended it
--   loop: references loop
--   process: references process
--   thread: references thread
--   length_ns: how long it was (ns)
--   waited_ns: time in it that the thread waited for another thread or process (ns)
--   read_ns: time in it that the thread read from files or sockets (ns)
--   read_name: the function in which it read longest
--   process_ns: time in it that the thread started processes (ns)
--   ordering_share: part of its Python samples in which a data loader begins an epoch or draws an order, 0 to 1
--   has_workers: whether its NVTX range or the Python stack says that other threads or processes prepare the input
create view input_segment as
with starving as (
  select
    h.api_call,
    h.loop,
    h.thread,
    h.start,
    h."end"
  from host_segment h
  where h.fetches_input
    and h.api_call in (
      select coalesce(f.waiting_call, p.api_call)
      from idle_interval p
      left join fed_input f on f.api_call = p.api_call
      where p.category = 'idle_input'
    )
),
spent as (
  select
    s.api_call,
    s.loop,
    n.text,
    sum(least(w."end", s."end") - w.start) as ns
  from (
    select
      thread,
      name,
      start,
      "end"
    from os_call
    where thread in (select thread from starving)
  ) w
  asof join starving s on w.thread = s.thread and s.start <= w.start
  join name n on n.id = w.name
  where w.start < s."end"
  group by s.api_call, s.loop, n.text
),
filed as (
  select
    *,
    bool_or(handles_files(text)) over (partition by loop) as has_files
  from spent
),
counted as (
  select
    api_call,
    sum(ns) filter (where waits_for_others(text)) as waited_ns,
    sum(ns) filter (where reads_data(text) or text = 'read' and has_files) as read_ns,
    arg_max(text, (ns, text)) filter (where reads_data(text) or text = 'read') as read_name,
    sum(ns) filter (where starts_process(text)) as process_ns
  from filed
  group by api_call
),
ordered as (
  select
    c.api_call,
    count(*) filter (where orders_items(y.frames)) / count(*) as share
  from call_sample c
  join py_sample y on y.id = c.sample
  where not c.inside and c.api_call in (select api_call from starving)
  group by c.api_call
),
-- PyTorch's own names for a loader with workers
marked as (
  select s.api_call
  from starving s
  join nvtx_range r on r.thread = s.thread and r.start < s."end" and r."end" > s.start
  where r.name in (select id from name where contains(text, '_MultiProcessingDataLoaderIter'))
  union all
  select c.api_call
  from call_sample c
  join py_sample y on y.id = c.sample
  where not c.inside
    and c.fetches_input
    and c.api_call in (select api_call from starving)
    and (
      waits_for_item(y.frames)
        or len(
          list_filter(y.frames, lambda f: f.function in ('_get_data', '_try_get_data') and is_data_loader(f.file))
        ) > 0
    )
)
select
  s.api_call,
  s.loop,
  t.process,
  s.thread,
  s."end" - s.start as length_ns,
  cast(coalesce(c.waited_ns, 0) as bigint) as waited_ns,
  cast(coalesce(c.read_ns, 0) as bigint) as read_ns,
  c.read_name,
  cast(coalesce(c.process_ns, 0) as bigint) as process_ns,
  coalesce(b.share, 0) as ordering_share,
  s.api_call in (select api_call from marked) as has_workers
from starving s
join thread t on t.id = s.thread
left join counted c on c.api_call = s.api_call
left join ordered b on b.api_call = s.api_call;
