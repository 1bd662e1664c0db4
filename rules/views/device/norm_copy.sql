-- A copy that a normalisation of PyTorch makes of channels-last images, or that the next convolution makes of its
-- result: GroupNorm and InstanceNorm work channels-first, and give back such images. Only in loops in which
-- convolutions are channels-last and at least one such copy lies between a normalisation and a convolution.
-- materialised: a window over all kernels of such streams
--   op: references gpu_op
--   loop: references loop
create view norm_copy as
with kernel_name as (
  select
    id,
    coalesce(normalises_channels_first(text), false) as normalises,
    contains(text, 'direct_copy_kernel_cuda') and coalesce(moves_data(text), false) as copies,
    kernel_role(text) is not distinct from 'convolution' as convolves,
    kernel_role(text) is not distinct from 'pointwise' and not normalises as pointwise,
    contains(text, 'nhwc') as channels_last
  from name
  where id in (select distinct name from analysed_gpu_op where kind = 'kernel')
),
normalising as (
  select distinct stream
  from analysed_gpu_op
  where kind = 'kernel' and name in (select id from kernel_name where normalises)
),
ordered as (
  select
    w.op,
    w.loop,
    n.copies,
    n.convolves and n.channels_last as channels_last,
    -- of GroupNorm the first two kernels compute the means
    lead(n.normalises, 1, false) over following
      or lead(n.normalises, 2, false) over following
      or lead(n.normalises, 3, false) over following as before_norm,
    coalesce(last_value(if(n.copies or n.pointwise, null, n.normalises) ignore nulls) over before, false)
      and lead(n.convolves, 1, false) over following as after_norm
  from loop_gpu_op w
  join analysed_gpu_op o on o.id = w.op
  join kernel_name n on n.id = o.name
  where w.class = 'compute' and w.stream in (select stream from normalising)
  window following
    as (partition by w.stream order by w.start, w.op), before
    as (partition by w.stream order by w.start, w.op rows between unbounded preceding and 1 preceding)
)
select
  op,
  loop
from ordered
qualify copies
  and (before_norm or after_norm)
  and bool_or(channels_last) over (partition by loop)
  and bool_or(copies and after_norm) over (partition by loop);
