-- A process that serves a language model, recognised by the kernels that only such engines have.
--   process: references process
--   kernel: one of those kernels
create view serving_process as
with telling as (
  select
    id,
    short
  from name
  where regexp_matches(
    text,
    '\bvllm::|\bflashinfer::|\btensorrt_llm::|\bturbomind::|paged_attention|reshape_and_cache|'
    'PagedKVCache|\bsgl_'
  )
)
select
  o.process,
  min(n.short) as kernel
from gpu_op o
join telling n on n.id = o.name
where o.kind = 'kernel'
group by o.process;
