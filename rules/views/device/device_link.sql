-- What the link between host and a GPU moves from pinned memory, by the GPU's generation.
--   device: references device
--   bytes_per_s: at most (B/s); null where the generation is not known
create view device_link as
select
  id as device,
  link_rate(cc_major) as bytes_per_s
from device;
