-- What a loop that starves for input waits for. Most of the time decides.
-- materialised: three rules ask it, and planning it costs more than running it
--   loop: references loop
--   cause: own (the launching thread prepares the input itself), workers (it waits for others) or reading (for files
--    or the network)
--   waited_share: part of the fetching time that the thread waits for another thread or process, 0 to 1
--   read_share: part of the time that it, or the thread it waits for, reads, 0 to 1
--   read_name: the function in which that thread reads longest
--   reads_itself: whether the launching thread is the one that reads
--   process_share: part of the time that it starts processes, 0 to 1
--   ordering_share: part of the time in which a data loader begins an epoch or draws an order, 0 to 1
create view input_cause as
with own as (
  select
    loop,
    sum(waited_ns) / sum(length_ns) as waited_share,
    sum(read_ns) / sum(length_ns) as read_share,
    sum(process_ns) / sum(length_ns) as process_share,
    sum(ordering_share * length_ns) / sum(length_ns) as ordering_share,
    arg_max(read_name, (read_ns, read_name)) as read_name,
    2 * count(*) filter (where has_workers) > count(*) as has_workers
  from input_segment
  group by loop
),
other as (
  select
    loop,
    max(read_share) as read_share,
    arg_max(read_name, (read_share, read_name)) as read_name
  from input_reader
  group by loop
)
select
  o.loop,
  case
    when o.read_share > 0.5 or o.waited_share > 0.5 and h.read_share > 0.5 then 'reading'
    when o.has_workers or o.waited_share > 0.5 then 'workers'
    else 'own'
  end as cause,
  o.waited_share,
  greatest(o.read_share, coalesce(h.read_share, 0)) as read_share,
  case when o.read_share >= coalesce(h.read_share, 0) then o.read_name else h.read_name end as read_name,
  o.read_share >= coalesce(h.read_share, 0) as reads_itself,
  o.process_share,
  o.ordering_share
from own o
left join other h using (loop);
