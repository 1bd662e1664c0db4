-- What a loop's products, convolutions and attention compute in. One row a loop that has any.
--   loop: references loop
--   fp32_share: part of the loop's time in products and convolutions on the ordinary cores, 0 to 1
--   tf32_share: the same in TF32
--   half_share: the same in half precision or less, attention too
--   layout_share: part of the loop's time in reordering images for convolutions
create view loop_precision as
select
  loop,
  coalesce(sum(share) filter (where format = 'fp32' and role <> 'attention'), 0) as fp32_share,
  coalesce(sum(share) filter (where format = 'tf32' and role <> 'attention'), 0) as tf32_share,
  coalesce(sum(share) filter (where format in ('half', 'fp8', 'int8')), 0) as half_share,
  coalesce(sum(share) filter (where role = 'layout'), 0) as layout_share
from named_kernel
where role in ('product', 'convolution', 'attention', 'layout')
group by loop;
