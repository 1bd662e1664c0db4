"""Kernels that exchange data between GPUs, by their names."""

from __future__ import annotations

import pytest

from timelines import launched, opened


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, int)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*, int)",
        "void at::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "void at::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**)",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 2>(tensorrt_llm::kernels::AllReduceParams)",
        "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<float, 8>(Params)",
        "void flashinfer::moereduce_allreduce_fusion_kernel_oneshot_lamport<float, 8>(Params)",
        "nvshmemi_proxy_barrier_kernel(int)",
    ],
)
def test_a_vendors_exchange_is_communication(name: str) -> None:
    assert classes(name) == {"communication"}


@pytest.mark.parametrize("name", ["gemm()", "reduce_kernel(float*)", "block_all_reduce(float*)", "one_shot(float*)"])
def test_a_reduction_on_one_gpu_is_work(name: str) -> None:
    assert classes(name) == {"compute"}


def classes(name: str) -> set[str]:
    with opened(launched(12, 100, ("gemm()", 2, 10, 30), (name, 6, 45, 10)), "loop_gpu_op") as con:
        return {
            found
            for (found,) in con.execute(
                "select distinct w.class from loop_gpu_op w join gpu_op o on o.id = w.op join name n on n.id = o.name"
                " where n.text = ?",
                [name],
            ).fetchall()
        }
