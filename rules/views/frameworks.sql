-- A framework that the traced program used, told by its kernels, its annotations or the packages in Python stacks.
-- materialised: matches every name and thousands of stack frames
--   framework: pytorch, cupy, numba, jax, triton, cuda, or any (directives such as OpenMP and OpenACC)
create view framework_seen as
with hint as (
    select framework, pattern from (values
        ('pytorch', '\bat::|c10::|void at_cuda_detail|-packages/torch/'),
        ('cupy', '^cupy_|^cupyx|-packages/cupyx?/'),
        ('numba', '^cudapy|__main__::.*\bArray<|_ZN6cudapy|\[abi:v1|-packages/numba(_cuda)?/'),
        ('jax', '^XlaModule|^(loop|input|wrapped)_.*fusion|-packages/jax(lib)?/'),
        ('triton', '^triton_|-packages/triton/'),
        ('any', '^nvkernel_|^__omp_offloading|__pgi_uacc|__nv_.*_F1L\d+')) as t(framework, pattern)
), text as (
    select text from name
    union select frame.file from (select unnest(frames) as frame from (select frames from py_sample using sample 2000 rows (reservoir, 1)))
), seen as (
    select distinct framework from hint join text on regexp_matches(text.text, hint.pattern)
)
select framework from seen
union all
select 'cuda' where not exists (from seen);
