-- How much device memory the traced programs held at most.
--   device: references device
--   peak_bytes: most bytes allocated at any time (B)
--   total_bytes: the device's memory (B)
create view memory_peak as
with held as (
  select
    device,
    sum(case when op = 'allocate' then bytes else -bytes end)
      over (partition by device order by time rows unbounded preceding)
      as bytes
  from memory_event
  where kind = 'device'
)
select
  h.device,
  cast(max(h.bytes) as bigint) as peak_bytes,
  any_value(d.memory_bytes) as total_bytes
from held h
join device d on d.id = h.device
group by h.device;
