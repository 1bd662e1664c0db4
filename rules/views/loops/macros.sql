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
