-- A framework that the traced program used, told by its kernels, its annotations or the files in Python stacks.
--   framework: pytorch, cupy, numba, jax, triton or cuda
create view framework_seen as
with hint as (
    select framework, pattern from (values
        ('pytorch', '\bat::|c10::|^at_cuda|void at_cuda_detail|/torch/'),
        ('cupy', '^cupy_|^cupyx|/cupyx?/'),
        ('numba', '^cudapy|__main__::.*\bArray<|_ZN6cudapy|/numba(_cuda)?/'),
        ('jax', '^XlaModule|^(loop|input|wrapped)_.*fusion|/jax(lib)?/'),
        ('triton', '^triton_|/triton/')) as t(framework, pattern)
), text as (
    select text from name
    union select frame.file from (select unnest(frames) as frame from (select frames from py_sample using sample 2000 rows (reservoir, 1)))
), seen as (
    select distinct framework from hint join text on regexp_matches(text.text, hint.pattern)
)
select framework from seen
union all
select 'cuda' where not exists (from seen);
