-- The part that idle time of a loop's pauses takes of the time from its first iteration to its last.
--   idle_ns: idle in the pauses (ns)
--   total_ns: the loop's iterations, over all devices (ns)
--   devices: how many there are
--   outside_ns: of the pauses, what lies between iterations, which total_ns does not hold (ns)
create macro paused_part(idle_ns, total_ns, devices, outside_ns) as
  idle_ns / (total_ns / greatest(1, devices) + outside_ns);

-- What the code is for that is loaded in pauses: `attention` or `convolution`, which cuDNN plans, where that takes the
-- given part of the time, else `code`.
create macro loaded_for(ns, attention_ns, other_cudnn_ns, part) as
  case
    when attention_ns >= part * ns then 'attention'
    when other_cudnn_ns >= part * ns then 'convolution'
    else 'code'
  end;

-- How long the stretches of time are by which what lies near some intervals is found (ns), of the lengths of these.
-- What lies in no such stretch is left out before it is sorted.
create macro near_width(length) as cast(greatest(median(length), max(length) // 1000, 1) as bigint);

-- The numbers of the stretches of a width that an interval touches: a moment is in the stretch moment // width.
create macro near_stretches(start, until, width) as range(start // width, until // width + 1);

-- Whether a thread of this name is one of PyTorch's own, on which backward passes run.
create macro runs_backward(thread_name) as coalesce(contains(thread_name, 'pt_autograd'), false);

-- The thread whose Python samples tell what a loop does, by loop, process and the thread that drives it: that one, but
-- for one of PyTorch's backward passes the thread that calls them. Of its process that has the most samples.
create macro sampled_threads() as table
with driven as (
  select
    loop,
    process,
    thread,
    min(start) as start,
    max("end") as "end"
  from iteration
  group by loop, process, thread
),
counted as (
  select
    d.loop,
    d.process,
    d.thread,
    y.thread as caller,
    count(*) as samples
  from driven d
  join thread t on t.id = d.thread
  join thread u on u.process = d.process
  join py_sample y on y.thread = u.id
  where runs_backward(t.name) and not runs_backward(u.name) and y.time >= d.start and y.time < d."end"
  group by d.loop, d.process, d.thread, y.thread
)
select
  d.loop,
  d.process,
  d.thread,
  coalesce(c.caller, d.thread) as sampled
from driven d
left join (
  select
    loop,
    process,
    thread,
    arg_max(caller, (samples, -caller)) as caller
  from counted
  group by loop, process, thread
) c on c.loop = d.loop
  and c.process = d.process
  and c.thread = d.thread;
