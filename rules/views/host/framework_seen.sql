-- A framework that the traced program used, recognised by its kernels, its annotations or the packages in Python
-- stacks. A Python program whose framework is not known is python: code in another language would be of no use to it.
-- materialised: matches every name and thousands of stack frames
--   framework: pytorch, cupy, numba, jax, triton, python, cuda, or any (OpenMP, OpenACC, Julia)
create view framework_seen as
with text as (
  select text
  from name
  union
  select frame.file
  from (
    select unnest(frames) as frame
    from (select frames from py_sample using sample 2000 rows (reservoir, 1))
    -- a package that is merely imported is not used
    where not list_bool_or(
      list_transform(frames, lambda f: f.function = '<module>' and contains(f.file, '-packages/'))
    )
  )
  union
  -- of a profile of the CPU, what takes time: it names all packages that were merely imported, too
  select file
  from (select file from cpu_function order by self_ns desc, id limit 100)
),
-- patterns in a column would be compiled anew for every text
seen as (
  select unnest(
    [
      case when bool_or(regexp_matches(text, '\bat::|c10::|void at_cuda_detail|-packages/torch/')) then 'pytorch' end,
      case when bool_or(regexp_matches(text, '^cupy_|^cupyx|-packages/cupyx?/')) then 'cupy' end,
      case
        when bool_or(
          regexp_matches(text, '^cudapy|__main__::.*\bArray<|_ZN6cudapy|\[abi:v1|-packages/numba(_cuda)?/')
        ) then 'numba'
      end,
      case
        when bool_or(regexp_matches(text, '^XlaModule|^(loop|input|wrapped)_.*fusion|-packages/jax(lib)?/'))
          then 'jax'
      end,
      case when bool_or(regexp_matches(text, '^triton_|-packages/triton/')) then 'triton' end,
      case
        when bool_or(
          regexp_matches(
            text,
            '^nvkernel_|^__omp_offloading|__pgi_uacc|__nv_.*_F1L\d+|^julia_|_Z\d+julia_|CuDeviceArray<|'
            '^[a-z]\w*_\d+_gpu(__red)?$'
          )
        ) then 'any'
      end
    ]
  ) as framework
  from text
)
select framework
from seen
where framework is not null
union all
select case
  when exists (from py_sample)
    or exists (from cpu_function)
    or exists (
      from process p
      where p.id in (select process from gpu_op)
        and regexp_matches(lower(p.name), '(^|[/\\])(i?python|jupyter|torchrun)')
    ) then 'python'
  else 'cuda'
end
where not exists (from seen where framework is not null);
