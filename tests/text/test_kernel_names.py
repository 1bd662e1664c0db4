"""Names of kernels that say what they do."""

from __future__ import annotations

import pytest

from gpudiag.text.kernel_names import with_operation

TORCH = "void at::native::"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            (f"{TORCH}vectorized_elementwise_kernel<(int)4, at::native::exp_kernel_cuda(at::TensorIteratorBase &)::"
            "[lambda() (instance 2)]::operator ()() const, std::array<char *, (unsigned long)2>>(int, T2, T3)"),
            "vectorized_elementwise_kernel (exp)",
        ),
        (
            (f"{TORCH}vectorized_elementwise_kernel<(int)4, at::native::BinaryFunctor<float, float, float, at::native::"
            "binary_internal::MulFunctor<float>>, std::array<char *, (unsigned long)3>>(int, T2, T3)"),
            "vectorized_elementwise_kernel (Mul)",
        ),
        (
            (f"{TORCH}elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
            "<unnamed>::where_kernel_impl(at::TensorIterator &)>>(int, T3)"),
            "elementwise_kernel (where)",
        ),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(T1::Params)",
         "Kernel2 (cutlass_80_simt_sgemm_128x64_8x5_nt_align1)"),
        ("__main__::transmit[abi:v1,cw51cXTLSUwv1sDUaK](Array<float, (int)1, C>)", "transmit"),
        ("__main__::paths[abi:v1,cw51c…, float, float)", "paths"),
        ("void regular_fft<(unsigned int)128, EPT<(unsigned int)16>>(int)", "regular_fft"),
        ("nvjet_sm90_tst_64x64", "nvjet_sm90_tst_64x64"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_kernel_is_named_with_its_operation(name: str, said: str) -> None:
    assert with_operation(name) == said
