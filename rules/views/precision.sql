-- Whether a kernel only turns numbers of one type into another. A copy that rearranges without turning is none.
create macro is_cast_kernel(name) as
    regexp_matches(name, '(bfloat16|float16|float8\w*)_copy_kernel|^triton_poi_fused__to_copy_\d+$|^(wrapped_|loop_)?convert(_fusion)?(_\d+)?$')
    or (regexp_matches(name, 'direct_copy_kernel') and regexp_matches(name, 'LoadWithCast|gpu_kernel_impl<'))
    or (regexp_matches(name, '^cupy_copy__\w*float') and regexp_extract(name, '__([a-z]+\d*)_', 1) <> regexp_extract(name, '_([a-z]+\d*)$', 1))
    or (regexp_matches(name, 'CopyFunctor<') and regexp_extract(name, 'CopyFunctor<([\w:]+),', 1) <> regexp_extract(name, 'CopyFunctor<[\w:]+, ([\w:]+)', 1));

-- What a kernel does, by its name: `product` (of matrices), `convolution`, `attention` (scores, softmax and weighted sum in one kernel), `softmax`,
-- `cast` (another number type), `layout` (an image's dimensions reordered), `pointwise`, `fused` (a compiler's reduction with pointwise work); else null.
create macro kernel_role(name) as case
    when regexp_matches(name, 'flash_?(fwd|bwd|fprop|bprop|attn|decode)|flash::|sdpa|fmha|[Aa]ttention|paged_attn') then 'attention'
    when regexp_matches(name, 'nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw') then 'layout'
    when is_cast_kernel(name) then 'cast'
    when regexp_matches(name, '(?i)softmax') then case when regexp_matches(name,
        '(?i)log_?softmax|topk|cross_?entropy|xent|nll|sampl|softmax_warp_(forward|backward)<[^>]*, (\(int\))?\d+, (\(bool\)1|true)') then null else 'softmax' end
    when regexp_matches(name, 'fprop|dgrad|wgrad|implicit_gemm|ImplicitGemmConvolution|convolve_|winograd|scudnn|conv[123]d|conv_depthwise') then 'convolution'
    when regexp_matches(name, '(?i)gemm|nvjet_|gemv|matmul|splitKreduce|ReduceSplitK|cutlass_\d+_(tensorop|simt|wmma)') then 'product'
    when regexp_matches(name, 'elementwise_kernel|dropout|^triton_poi_fused|^(loop|wrapped)_\w*(fusion|add|multiply|select)') then 'pointwise'
    when regexp_matches(name, '^triton_(red|per)_fused') then 'fused'
end;

-- What a kernel's numbers are, by its name: `half` (bfloat16 or float16), `tf32`, `fp32`, `fp64`, `fp8`, `int8` or `complex`; null where the name does not say.
-- What goes in counts, not the sums. `xmma` and `cutlass` say nothing, `f32f32_f32f32` and `simt` are the ordinary cores; `s1688` without a half type is
-- TF32; `nvjet_tst` takes bfloat16, `hsh` float16, `qqtst` FP8, `sss` FP32 as TF32.
create macro number_format(name) as case
    when regexp_matches(name, 'nvjet_(sm\d+_)?[a-z]') then case regexp_extract(name, 'nvjet_(?:sm\d+_)?([a-z])', 1)
        when 't' then 'half' when 'h' then 'half' when 's' then 'tf32' when 'q' then 'fp8' when 'd' then 'fp64' when 'i' then 'int8' end
    when regexp_matches(name, 'splitKreduce|ReduceSplitK') then null
    when regexp_matches(name, 'cf32|cf64|c1688|[cz]gemm|float2\b|double2|[cC]omplex') then 'complex'
    when regexp_matches(name, 'f64|dgemm|d884|d1688|double') then 'fp64'
    when regexp_matches(name, 'i16832|i8816|i8i8|_s8_|imma') then 'int8'
    when regexp_matches(name, 'e4m3|e5m2|f8f8|fp8|[fF]loat8') then 'fp8'
    when regexp_matches(name, 'bf16|f16|fp16|BFloat16|bfloat16|Half\b|__half|\bhalf\b|half_t|h884|h1688|h16816|hgemm') then 'half'
    when regexp_matches(name, 'tf32|s1688(gemm|fprop|dgrad|wgrad)') then 'tf32'
    when regexp_matches(name, 'sgemm|ffma|simt|f32f32_f32f32|gemmSN|magma_s|scudnn|_f32_|\bfloat\b') then 'fp32'
end;

-- Numbers that a tensor-core kernel fetches at once, as its name states; null where it does not. Ordinary cores fetch one by one in any case.
create macro stated_alignment(name) as case when not regexp_matches(name, 'simt|ffma|sgemm')
    then try_cast(regexp_extract(name, '_aligna?(\d+)', 1) as integer) end;

-- Numbers in 16 bytes, the widest fetch.
create macro full_alignment(format) as case format when 'half' then 8 when 'tf32' then 4 when 'fp8' then 16 when 'int8' then 16 end;

-- How much a loop used a kernel, as kernel_use, with what its name tells.
-- materialised: the precision rules read it
--   loop: references loop
--   name: the kernel's full name
--   kernel: a name to print: the inner one where the outer one says nothing
--   role: what it does, see kernel_role
--   format: what its numbers are, see number_format
--   alignment: numbers that it fetches at once; null where the name does not say
--   nvtx_path: the range that most of its launches lie in
--   launches: how often it ran
--   total_ns: summed duration (ns)
--   median_ns: median duration (ns)
--   share: its part of the loop's time
--   cc_major: the device's compute capability, major
--   gpu_ops: its operations (references gpu_op)
create view named_kernel as
with known as (
    select *, kernel_role(name) as role from kernel_use
), placed as (
    select k.loop, k.name, k.grid, k.block, mode(p.path order by p.path) as nvtx_path
    from (select loop, name, grid, block, unnest(gpu_ops) as op from known where role is not null) k
    join nearby_op o on o.id = k.op join call_place p on p.api_call = o.api_call group by all
)
select k.loop, k.name, coalesce(nullif(regexp_extract(k.name, 'cutlass_(\d+_)?(tensorop|simt|wmma)\w*'), ''), k.short) as kernel, k.role,
       number_format(k.name) as format, stated_alignment(k.name) as alignment, p.nvtx_path, k.launches, k.total_ns, k.median_ns, k.share, k.cc_major, k.gpu_ops
from known k left join placed p on p.loop = k.loop and p.name = k.name and p.grid is not distinct from k.grid and p.block is not distinct from k.block;

-- What a loop's products, convolutions and attention compute in. One row a loop that has any.
--   loop: references loop
--   fp32_share: part of the loop's time in products and convolutions on the ordinary cores, 0 to 1
--   tf32_share: the same in TF32
--   half_share: the same in half precision or less, attention too
--   layout_share: part of the loop's time in reordering images for convolutions
create view loop_precision as
select loop, coalesce(sum(share) filter (where format = 'fp32' and role <> 'attention'), 0) as fp32_share,
       coalesce(sum(share) filter (where format = 'tf32' and role <> 'attention'), 0) as tf32_share,
       coalesce(sum(share) filter (where format in ('half', 'fp8', 'int8')), 0) as half_share,
       coalesce(sum(share) filter (where role = 'layout'), 0) as layout_share
from named_kernel where role in ('product', 'convolution', 'attention', 'layout') group by loop;

-- A kernel of an attention that runs as several: a product, a softmax and a product after one another in a stream, with pointwise work and copies between.
--   loop: references loop
--   op: references gpu_op
--   kernel: a name to print
--   nvtx_path: the range that most of its launches lie in
--   part: softmax, between (all work between the two products but the softmax) or product
--   backward: whether it belongs to the gradient of a softmax
--   duration_ns: how long it ran (ns)
create view unfused_attention as
with softened as (
    select loop from named_kernel where role = 'softmax' group by loop having sum(share) >= setting('least_softmax')
), known as (
    select loop, name, min(kernel) as kernel, min(role) as role, min(format) as format, arg_max(nvtx_path, (total_ns, nvtx_path)) as nvtx_path,
           regexp_matches(name, '(?i)softmax\w*backward|backward\w*softmax') as backward
    from named_kernel where loop in (select loop from softened) group by loop, name
), step as (
    select w.loop, coalesce(w.turn, -1) as turn, w.stream, w.op, w.kind, w.duration_ns, w.start, k.kernel, k.nvtx_path, k.role, k.format, k.backward,
           not (w.kind in ('memcpy', 'memset') or coalesce(k.role in ('pointwise', 'cast'), false)) as marks
    from work w left join known k on k.loop = w.loop and k.name = w.name
    where w.class <> 'communication' and w.loop in (select loop from softened)
), numbered as materialized (
    select *, sum(marks::integer) over (partition by loop, turn, stream order by start, op) as place from step
), mark as (
    select *, lag(role) over s as role_before, lead(role) over s as role_after, lag(format) over s as format_before, lead(format) over s as format_after
    from numbered where marks
    window s as (partition by loop, turn, stream order by start, op)
), hit as (
    select loop, turn, stream, place + away as place, away, backward
    from mark cross join unnest([-1, 0, 1]) as around(away)
    where role = 'softmax' and role_before = 'product' and role_after = 'product' and 'half' in (format_before, format_after)
      and coalesce(format_before, 'half') = 'half' and coalesce(format_after, 'half') = 'half'
)
select distinct n.loop, n.op, coalesce(n.kernel, n.kind) as kernel, n.nvtx_path, n.duration_ns,
       case when not n.marks then 'between' when h.away = 0 then 'softmax' else 'product' end as part, h.backward
from numbered n join hit h on n.loop = h.loop and n.turn = h.turn and n.stream = h.stream and n.place = h.place
where n.kind <> 'memset' and (n.marks or h.away < 1);
