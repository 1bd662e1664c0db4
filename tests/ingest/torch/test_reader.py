"""Synthetic traces as canonical tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest.torch import frames, gpu
from torch_traces import BASE, Event, call, event, launched, of, work


def states(con: object) -> dict[str, tuple[str, str]]:
    rows = con.execute("select name, state, how from capability").fetchall()  # type: ignore[attr-defined]
    return {name: (state, how) for name, state, how in rows}


def test_kernels_copies_and_sets(tmp_path: Path) -> None:
    con = of(
        tmp_path, *launched(1),
        call("cudaMemcpyAsync", 900, 9, 50),
        work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 905, 3, 50, bytes=64),
        call("cudaMemsetAsync", 920, 9, 51), work("gpu_memset", "Memset (Device)", 925, 3, 51, bytes=8),
    )  # fmt: skip
    kernel = con.execute(
        "select short, grid, grid_y, block, registers, dynamic_shared, device, k.api_call from gpu_op k"
        " join name n on n.id = k.name order by k.start limit 1"
    ).fetchall()
    assert kernel == [("gemm", 8, 2, 128, 32, 16, 0, 0)]
    others = con.execute(
        "select kind, copy_kind, src_kind, dst_kind, bytes from gpu_op where kind <> 'kernel' order by 1"
    )
    assert others.fetchall() == [
        ("memcpy", "host_to_device", "pageable", "device", 64), ("memset", None, None, "device", 8)
    ]  # fmt: skip
    assert con.execute("select name, sm_count, cc_major, max_warps_per_sm, clock_hz from device").fetchall() == [
        ("NVIDIA Toy", 40, 9, 64, None)
    ]


@pytest.mark.parametrize(
    ("sizes", "known"),
    [
        ({"grid": [2_147_483_647, 2, 1], "block": [32, 32, 1]}, (4_294_967_294, 1024)),
        ({"grid": [2_147_483_648, 1, 1], "block": [32, 33, 1]}, (None, None)),
        ({"grid": [1, 65_536, 1], "block": [2_147_483_647, 1_000_000, 2]}, (None, None)),
    ],
)
def test_launches_that_cuda_refuses_have_no_size(
    tmp_path: Path, sizes: dict[str, list[int]], known: tuple[int | None, int | None]
) -> None:
    con = of(tmp_path, call("cudaLaunchKernel", 1, 2, 1), work("kernel", "k", 5, 5, 1, **sizes))
    assert con.execute("select grid, block from gpu_op").fetchall() == [known]


def test_a_copy_of_less_than_nothing_has_no_size(tmp_path: Path) -> None:
    copy = work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 5, 3, 1, bytes=-64)
    con = of(tmp_path, call("cudaMemcpyAsync", 1, 9, 1), copy)
    assert con.execute("select kind, bytes from gpu_op").fetchall() == [("memcpy", None)]


def test_a_driver_call_inside_a_runtime_call_belongs_to_it(tmp_path: Path) -> None:
    con = of(
        tmp_path, call("cudaLaunchKernel", 10, 10, 1), call("cuLaunchKernel", 12, 4, 2), work("kernel", "k", 30, 5, 2),
        call("cuLaunchKernel", 40, 4, 3), work("kernel", "k", 50, 5, 3),
    )  # fmt: skip
    assert con.execute("select id, parent from api_call order by id").fetchall() == [(0, None), (1, 0), (2, None)]
    assert con.execute("select api_call from gpu_op order by start").fetchall() == [(0,), (2,)]


def test_a_wait_for_a_stream_is_for_the_one_last_used(tmp_path: Path) -> None:
    other = {**work("kernel", "k", 12, 50, 1), "tid": 20}
    other["args"] = {**other["args"], "stream": 20}
    con = of(
        tmp_path, call("cudaLaunchKernel", 1, 2, 9), work("kernel", "k", 5, 5, 9), call("cudaLaunchKernel", 10, 2, 1),
        other, call("cudaStreamSynchronize", 20, 43, 2), call("cudaDeviceSynchronize", 70, 1, 3),
    )  # fmt: skip
    found = con.execute("select y.kind, s.number from sync y left join stream s on s.id = y.stream order by y.start")
    assert found.fetchall() == [("stream", 20), ("context", None)]
    assert states(con)["events"][0] == "not_recorded"


def test_recorded_waits_and_events_are_taken_as_they_are(tmp_path: Path) -> None:
    second = work("kernel", "k", 120, 50, 3)
    second["args"] = {**second["args"], "stream": 20}
    wait = event("cuda_sync", "Stream Wait Event", 90, 1, 20, cuda_sync_kind="Stream Wait Event", stream=20, context=1,
                 device=0, correlation=2, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5)  # fmt: skip
    con = of(
        tmp_path, call("cudaLaunchKernel", 1, 2, 1), work("kernel", "k", 5, 100, 1), call("cudaEventRecord", 20, 1, 5),
        call("cudaStreamWaitEvent", 90, 2, 2), wait, call("cudaLaunchKernel", 100, 2, 3), second,
    )  # fmt: skip
    assert con.execute("select kind from sync").fetchall() == [("stream_wait_event",)]
    assert con.execute(
        "select f.number, t.number, e.from_op from event_edge e join stream f on f.id = e.from_stream"
        " join stream t on t.id = e.to_stream"
    ).fetchall() == [(7, 20, 0)]
    assert states(con)["events"][0] == "recorded"


def test_a_wait_of_the_host_names_what_its_event_followed(tmp_path: Path) -> None:
    wait = event("cuda_sync", "Event Sync", 90, 20, 0, cuda_sync_kind="Event Sync", stream=-1, context=1, device=0,
                 correlation=2, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5)  # fmt: skip
    con = of(
        tmp_path, call("cudaLaunchKernel", 1, 2, 1), work("kernel", "k", 5, 100, 1), call("cudaEventRecord", 20, 1, 5),
        call("cudaLaunchKernel", 30, 2, 3), work("kernel", "k", 105, 50, 3), call("cudaEventSynchronize", 90, 20, 2),
        wait,
    )  # fmt: skip
    assert con.execute("select kind, after_op from sync").fetchall() == [("event", 0)]
    assert con.execute("select count(*) from event_edge").fetchall() == [(0,)]


def test_what_follows_the_last_step_is_no_iteration(tmp_path: Path) -> None:
    rest = [event("user_annotation", "ProfilerStep#8", 3000, 41), call("cudaDeviceSynchronize", 3010, 9, 90)]
    con = of(tmp_path, *launched(3), *rest)
    steps = con.execute("select n.text from nvtx_range r join name n on n.id = r.name order by r.start").fetchall()
    assert steps == [("ProfilerStep#5",), ("ProfilerStep#6",), ("ProfilerStep#7",)]


def test_annotations_nest_and_those_that_cross_are_siblings(tmp_path: Path) -> None:
    con = of(
        tmp_path, *launched(1, steps=False), event("user_annotation", "ProfilerStep#1", 0, 100),
        event("user_annotation", "a", 10, 50), event("user_annotation", "b", 40, 40),
        event("user_annotation", "c", 45, 5),
    )  # fmt: skip
    rows = con.execute(
        "select text, depth, parent from nvtx_range r join name n on n.id = r.name order by r.id"
    ).fetchall()
    assert rows == [("ProfilerStep#1", 0, None), ("a", 1, 0), ("b", 1, 0), ("c", 2, 1)]


def test_stacks_name_the_function_and_no_line(tmp_path: Path) -> None:
    def function(name: str, ts: float, dur: float, own: int, parent: int | None) -> dict[str, object]:
        return event("python_function", name, ts, dur, **{"Python id": own, "Python parent id": parent})

    con = of(
        tmp_path, *launched(1),
        function("train.py(3): <module>", 0, 1000, 1, None), function("train.py(40): step", 1, 400, 2, 1),
        function("torch/nn/modules/module.py(1776): _call_impl", 2, 390, 3, 2),
        function("<built-in method mm of type object at 0x7f>", 3, 380, 4, 3),
    )  # fmt: skip
    stacks = dict(con.execute("select time // 1000, frames from py_sample order by time").fetchall())
    inside = [(frame["function"], frame["file"], frame["line"]) for frame in stacks[225]]
    assert inside == [
        ("<built-in method mm of type object at 0x7f>", None, None),
        ("_call_impl", "/site-packages/torch/nn/modules/module.py", None),
        ("step", "train.py", None),
        ("<module>", "train.py", None),
    ]
    assert [frame["function"] for frame in stacks[900]] == ["<module>"]
    assert states(con)["python_samples"][0] == "recorded"


def test_stacks_of_1_8_have_the_line_that_was_running(tmp_path: Path) -> None:
    stack = "/x/site-packages/torch/nn/modules/linear.py(94): forward;train.py(12): <module>"
    con = of(tmp_path, *launched(1), event("Operator", "aten::mm", 0, 9, **{"Call stack": stack}))
    ((found,),) = con.execute("select frames from py_sample").fetchall()
    assert states(con)["python_calls"][0] == "not_recorded"  # so the replay takes no account of what these cost
    assert [(frame["file"], frame["line"]) for frame in found] == [
        ("/x/site-packages/torch/nn/modules/linear.py", 94), ("train.py", 12)
    ]  # fmt: skip


def test_nothing_that_was_not_recorded_counts_as_recorded(tmp_path: Path) -> None:
    found = states(of(tmp_path, *launched(4)))
    lacking = {
        "os_calls",
        "um_faults",
        "gpu_metrics",
        "memory",
        "allocator",
        "events",
        "python_samples",
        "python_calls",
    }
    assert {name for name, (state, _) in found.items() if state == "not_recorded"} == lacking
    assert "with_stack=True" in found["python_samples"][1]
    assert "Nsight Systems" in found["os_calls"][1]


def test_collectives_carry_what_pytorch_states_of_them(tmp_path: Path) -> None:
    stated = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 8,
              "dtype": "BFloat16", "Process Group Name": "dp"}  # fmt: skip
    con = of(
        tmp_path, call("cudaLaunchKernelExC", 1, 2, 1), call("cudaLaunchKernelExC", 5, 2, 2),
        work("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs<4096ul>)", 10, 5, 1, **stated),
        work("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 20, 5, 2),
    )  # fmt: skip
    assert con.execute('select op, bytes, ranks, "group", sequence from collective order by sequence').fetchall() == [
        ("all_reduce", 2000, 8, "dp", 0), ("send_recv", None, None, None, 1)
    ]  # fmt: skip


def test_the_rank_is_the_one_that_the_trace_states(tmp_path: Path) -> None:
    con = of(tmp_path, *launched(1), distributedInfo={"rank": 3, "world_size": 8})
    assert con.execute("select rank, pid from process").fetchall() == [(3, 4242)]


def test_kernels_of_a_graph_are_nodes(tmp_path: Path) -> None:
    con = of(
        tmp_path, call("cudaGraphLaunch", 1, 9, 1), work("kernel", "a", 20, 5, 1), work("kernel", "b", 30, 5, 1),
        call("cudaLaunchKernel", 40, 2, 2), work("kernel", "c", 50, 5, 2),
    )  # fmt: skip
    assert con.execute("select graph_node from gpu_op order by start").fetchall() == [(1,), (2,), (None,)]


def test_a_first_input_counts_from_its_own_beginning(tmp_path: Path) -> None:
    con = of(tmp_path, *launched(2))
    assert con.execute("select kind, producer, clock_offset_ns from input").fetchall() == [
        ("torch", "torch.profiler", 0)
    ]
    assert con.execute("select began from clock_start").fetchall() == [(BASE,)]


@pytest.mark.parametrize(
    ("events", "stated", "said"),
    [
        ([{**launched(1)[1], "name": "hipLaunchKernel"}], {}, "AMD GPU"),
        (launched(1), {"roctracer_version": "4.1"}, "AMD GPU"),
        ([event("mtia_runtime", "run", 1, 2)], {}, "MTIA"),
        ([event("xpu_runtime", "run", 1, 2)], {}, "Intel GPU"),
        ([event("cpu_op", "aten::add", 1, 2)], {}, "work of the CPU only"),
        ([event("blink", "Paint", 1, 2)], {}, "not one that torch.profiler wrote"),
        ([], {}, "holds no event"),
        ([call("cudaFree", 1, 2, 1), {**call("cudaFree", 1, 2, 1), "pid": 7}], {}, "2 processes"),
    ],
)
def test_a_trace_without_cuda_work_is_refused_by_name(
    tmp_path: Path, events: list[dict[str, object]], stated: dict[str, object], said: str
) -> None:
    with pytest.raises(GpudiagError, match=said) as error:
        of(tmp_path, *events, **stated)
    assert str(error.value).startswith(str(tmp_path)) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("void at::native::vectorized<4, at::(anonymous namespace)::f(int)::{lambda(float)#1}, A<char*, 2ul> >(int)",
         "vectorized"),
        ("ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_f32"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void (anonymous namespace)::softmax_warp_forward<float>(float*)", "softmax_warp_forward"),
        ("sm80_xmma_gemm_f32", "sm80_xmma_gemm_f32"),
    ],
)  # fmt: skip
def test_short_names_of_kernels(text: str, short: str) -> None:
    assert gpu.base_name(text) == short


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("train.py(3): f", "train.py"),
        ("models/net.py(3): f", "models/net.py"),
        ("torch/utils/data/dataloader.py(631): __next__", "/site-packages/torch/utils/data/dataloader.py"),
        ("threading.py(1030): _bootstrap", "/lib/python3/threading.py"),
        ("/home/me/train.py(3): f", "/home/me/train.py"),
        ("<frozen importlib>(3): f", None),
        ("nn.Module: Linear_0", None),
    ],
)
def test_files_of_packages_are_not_the_users(name: str, file: str | None) -> None:
    assert frames.parse(name).file == file


def test_a_call_belongs_to_the_innermost_operator_around_it(tmp_path: Path) -> None:
    con = of(
        tmp_path,
        event("cpu_op", "aten::linear", 0, 100, **{"Input Dims": [[], [8, 4], [], [4, 2]]}),
        event("cpu_op", "aten::empty", 5, 10),
        event("cpu_op", "aten::addmm", 20, 60, **{"Input Dims": [[], [8, 4], [], [4, 2]]}),
        call("cudaLaunchKernel", 30, 5, 1), work("kernel", "k", 50, 5, 1), call("cudaFree", 90, 2, 2),
        event("cpu_op", "aten::add", 110, 10, 77), call("cudaLaunchKernel", 112, 2, 3),
        call("cudaFree", 115, 2, 4, tid=77),
    )  # fmt: skip
    rows = con.execute(
        "select n.text, o.shapes from api_call a left join op o on o.id = a.op left join name n on n.id = o.name"
        " order by a.start"
    ).fetchall()
    shapes = "[[8,4],[4,2]]"
    assert rows == [("aten::addmm", shapes), ("aten::linear", shapes), (None, None), ("aten::add", None)]
    assert con.execute("select count(*) from op").fetchall() == [(3,)]


def training(*, engine: bool = True) -> list[Event]:
    """Linear_0 with its product, an optimizer, and the product's gradient on autograd's thread."""
    number = {"Sequence number": 5}
    name = "autograd::engine::evaluate_function: AddmmBackward0" if engine else "AddmmBackward"
    return [
        event("python_function", "nn.Module: Net_0", 0, 100, **{"Python id": 1}),
        event("python_function", "nn.Module: Linear_0", 10, 50, **{"Python id": 2, "Python parent id": 1}),
        event("cpu_op", "aten::addmm", 20, 20, **number), call("cudaLaunchKernel", 25, 5, 1),
        event("cpu_op", name, 200, 40, 77, **number),
        event("cpu_op", "aten::mm", 205, 30, 77), call("cudaLaunchKernel", 210, 5, 2, tid=77),
        event("cpu_op", "aten::_fused_adamw_", 300, 20), call("cudaLaunchKernel", 305, 5, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", [True, False])
def test_a_gradient_belongs_to_the_module_of_its_forward(tmp_path: Path, engine: bool) -> None:
    con = of(tmp_path, *training(engine=engine))
    assert con.execute(
        "select n.text, o.module, o.pass from op o join name n on n.id = o.name order by o.start"
    ).fetchall() == [
        ("aten::addmm", "Linear_0", "forward"),
        ("aten::mm", "Linear_0", "backward"),
        ("aten::_fused_adamw_", None, None),
    ]


def test_without_a_backward_pass_nothing_is_forward(tmp_path: Path) -> None:
    con = of(tmp_path, *training()[:4])
    assert con.execute("select module, pass from op").fetchall() == [("Linear_0", None)]
