-- How much device memory the traced programs held at most.
--   device: references device
--   peak_bytes: most bytes held at any time (B)
--   total_bytes: the device's memory (B)
create view memory_peak as
select
  m.device,
  cast(max(m.held_bytes) as bigint) as peak_bytes,
  any_value(d.memory_bytes) as total_bytes
from memory_level m
join device d on d.id = m.device
group by m.device;
