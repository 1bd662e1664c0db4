-- The part that idle time of a loop's pauses takes of the time from its first iteration to its last.
--   idle_ns: idle in the pauses (ns)
--   total_ns: the loop's iterations, over all devices (ns)
--   devices: how many there are
--   outside_ns: of the pauses, what lies between iterations, which total_ns does not hold (ns)
create macro paused_part(idle_ns, total_ns, devices, outside_ns) as
  idle_ns / (total_ns / greatest(1, devices) + outside_ns);
