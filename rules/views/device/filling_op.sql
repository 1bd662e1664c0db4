-- A kernel that has more threads than the GPU holds at once, and so fills it.
--   op: references gpu_op
create view filling_op as
select o.id as op
from analysed_gpu_op o
join device d on d.id = o.device
-- 32 threads a warp
where o.kind = 'kernel' and o.grid * o.block > 32 * d.sm_count * d.max_warps_per_sm;
