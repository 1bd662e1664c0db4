-- What the code that a loop loads is for: the kernel that is launched next on the thread tells. cuDNN compiles some of
-- its kernels when it plans an operation on a new shape, or tries all that could do it.
--   loop: references loop
--   ns: host time of the calls that load code, with that right before them (ns)
--   attention_ns: of that, before kernels of cuDNN's attention (ns)
--   cudnn_ns: of that, before kernels of cuDNN of any kind (ns)
create view loaded_code as
with launched as (
  select
    c.thread,
    c.seq,
    n.text
  from call c
  join analysed_gpu_op o on o.api_call = c.id
  join name n on n.id = o.name
  where c.kind = 'launch'
)
select
  c.loop,
  sum(c."end" - c.segment_start) as ns,
  sum(case when plans_attention(l.text) then c."end" - c.segment_start else 0 end) as attention_ns,
  sum(case when is_cudnn(l.text) then c."end" - c.segment_start else 0 end) as cudnn_ns
from call c
asof left join launched l on l.thread = c.thread and l.seq >= c.seq
where c.kind = 'load' and loads_code(c.name)
group by c.loop;
