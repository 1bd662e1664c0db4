-- The device memory that a program holds after each change: what its framework's pool gave out, else what the driver
-- did.
-- materialised: added up once
--   process: references process
--   device: references device
--   thread: references thread; null where it is not recorded
--   time: when it changed (ns)
--   change_bytes: bytes allocated; negative for a free (B)
--   held_bytes: what is held after it (B)
--   reserved_bytes: what the pool has from the driver after it; null without a pool (B)
--   address: where the memory begins; null where it is not recorded
create view memory_level as
select
  process,
  device,
  thread,
  time,
  case when op = 'allocate' then bytes else -bytes end as change_bytes,
  coalesce(
    allocated,
    sum(change_bytes) over (partition by device, kind order by time, change_bytes rows unbounded preceding)
  ) as held_bytes,
  reserved as reserved_bytes,
  address
from memory_event
where kind in ('device', 'pool');
