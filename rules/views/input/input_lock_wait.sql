-- Idle time in which the launching thread waits for a lock while the thread runs that prepares its input: the one that
-- runs in most samples while it waits for input. In Python only the thread that holds the interpreter lock runs.
--   idle_interval: references idle_interval
--   loop: references loop
--   function: the function that the other thread is in most often
--   place: where in it, as a struct of file and line
create view input_lock_wait as
with waiting as (
  select
    idle_interval,
    loop,
    thread,
    leaf,
    start,
    "end"
  from idle_interval
  where doing = 'segment' and leaf in ('blocked', 'input')
),
met as (
  select
    w.loop,
    w.leaf,
    h.other_thread,
    h.function,
    mode(h.place order by h.place) as place,
    count(*) as samples
  from lock_holder h
  asof join waiting w on w.thread = h.thread and w.start <= h.time
  where h.time < w."end"
  group by w.loop, w.leaf, h.other_thread, h.function
),
running as (
  select
    loop,
    leaf,
    other_thread,
    arg_max(function, (samples, function)) as function,
    arg_max(place, (samples, function)) as place
  from met
  group by loop, leaf, other_thread
  qualify sum(samples) > setting('most_share') * sum(sum(samples)) over (partition by loop, leaf)
)
select
  w.idle_interval,
  w.loop,
  b.function,
  b.place
from running b
join running i on i.loop = b.loop and i.other_thread = b.other_thread and i.leaf = 'input'
join waiting w on w.loop = b.loop and w.leaf = 'blocked'
where b.leaf = 'blocked';
