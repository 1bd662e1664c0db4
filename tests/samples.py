"""Synthetic reports, built by hand: the figures agree with each other but were measured nowhere."""

from gpudiag.model import (
    Finding,
    Gain,
    Input,
    Kernel,
    Loop,
    Note,
    Outside,
    Place,
    Remedy,
    Report,
    Run,
    Stall,
    Suppressed,
    Tool,
    Unevaluated,
    Verdict,
)

TITLES = {
    "S02": "An explicit synchronize call in every iteration",
    "M02": "Copies from pageable memory hold up the CPU",
    "A01": "cudaFree waits for running kernels",
    "D01": "The GPU waits for the next batch",
    "S03": "The CPU waits for the whole GPU",
}
NO_NCU = {
    "reason": "no Nsight Compute profile was given",
    "hint": "`ncu --set full -k <kernel> -o report python decode.py`",
}
GRAPHS = Remedy(
    id="cuda-graphs",
    title="Replay the step as one CUDA graph",
    framework="pytorch",
    text=(
        "One replay sends all kernels of the step at once.\n\n"
        '```python\nstep = torch.compile(step, mode="reduce-overhead")\n\n\n'
        "for token in range(n):\n    step(token)\n```"
    ),
)
GRAPHS_CUPY = Remedy(
    id="cuda-graphs",
    title="Replay the step as one CUDA graph",
    framework="cupy",
    text="```python\nwith stream:\n    stream.begin_capture()\n    step()\n    graph = stream.end_capture()\n```",
)
KEEP = Remedy(
    id="keep-on-device",
    title="Keep the value on the GPU",
    framework="pytorch",
    text="Compare on the GPU and read the answer once, after the loop:\n\n```python\ndone |= token == eos\n```",
)


def launch_bound_finding(**changes: object) -> Finding:
    values: dict[str, object] = {
        "rank": 1,
        "code": "H01",
        "id": "launch-bound",
        "status": "draft",
        "title": "The GPU waits for small kernels to be launched",
        "severity": "high",
        "confidence": "high",
        "fingerprint": "9f2c41d07a3b",
        "gain": Gain(
            kind="upper_bound",
            basis="loop",
            loop=1,
            before_ms=5.7,
            after_ms=1.2,
            low_ms=1.2,
            high_ms=5.7,
            speedup=4.75,
            share=0.789,
            cumulative_after_ms=1.2,
        ),
        "where": (
            Place(file="decode.py", line=31, function="step", nvtx="decode_token", share=0.93),
            Place(file="decode.py", line=44, function="sample", nvtx="decode_token/sample", share=0.07),
        ),
        "evidence": {"kernels_per_iteration": 412, "median_kernel_ns": 2900, "median_launch_interval_ns": 13400},
        "message": "412 kernels an iteration run for 2.9 µs each, but the CPU needs 13.4 µs to launch one.",
        "why": "Each launch costs the CPU time. A kernel shorter than that is over before the next one arrives.",
        "not_a_problem_when": "The loop is a warm-up, or runs only a few times.",
        "check": "Profile again: `decode_token` should idle less, and show one `cudaGraphLaunch`.",
        "remedies": (GRAPHS, GRAPHS_CUPY),
        "references": ("https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",),
    }
    return Finding.model_validate(values | changes)


def readback_finding() -> Finding:
    return Finding(
        rank=2,
        code="S01",
        id="scalar-readback-in-loop",
        status="stable",
        title="A scalar is read back from the GPU in every iteration",
        severity="high",
        confidence="medium",
        confidence_reason="Python lines come from samples taken every 1 ms",
        fingerprint="0b1d7e55aa90",
        gain=Gain(
            kind="expected",
            basis="loop",
            loop=1,
            before_ms=5.7,
            after_ms=5.41,
            low_ms=5.3,
            high_ms=5.6,
            speedup=1.054,
            share=0.051,
            cumulative_after_ms=1.18,
        ),
        where=(Place(file="decode.py", line=52, function="finished", nvtx="decode_token", share=1.0),),
        evidence={"copies_per_iteration": 1, "copy_bytes": 4, "idle_after_ns": 290000.0},
        message="1 place reads 4 bytes back in every iteration; the GPU then idles 290 µs an iteration.",
        why="The CPU stops until the GPU has finished everything, then has nothing queued.",
        not_a_problem_when="The value decides what runs next and cannot be computed on the GPU.",
        remedies=(KEEP,),
    )


def launch_bound() -> Report:
    return Report(
        tool=Tool(version="0.0.0"),
        inputs=(
            Input(kind="nsys", file="captures/decode.sqlite", producer="Nsight Systems", producer_version="2025.3.2"),
        ),
        verdict=Verdict(
            state="problems",
            text="The GPU is idle 79 % of each `decode_token`: the CPU launches small kernels too slowly.",
        ),
        run=Run(
            devices=("NVIDIA H200",),
            span_ms=5100.2,
            cold_start_ms=4480.2,
            mode="iterations",
            coverage=0.81,
            outside=Outside(before_ms=38.0, between_ms=0.0, after_ms=2.0),
            loops=(
                Loop(
                    id=1,
                    name="decode_token",
                    nvtx_path="decode_token",
                    source="nvtx",
                    iterations=100,
                    iteration_ms=5.7,
                    share_of_span=0.919,
                    budget={
                        "compute": 0.204,
                        "exposed_copy": 0.003,
                        "idle_launch": 0.72,
                        "idle_sync": 0.051,
                        "idle_other": 0.022,
                    },
                ),
            ),
            frameworks=("pytorch",),
        ),
        findings=(launch_bound_finding(), readback_finding()),
        minor=(
            launch_bound_finding(
                rank=3,
                code="M05",
                title="Many small copies where one would do",
                gain=Gain(kind="upper_bound", basis="loop", loop=1, before_ms=5.7, after_ms=5.63, share=0.012),
                where=(Place(file="decode.py", line=20, function="pack"),),
            ),
        ),
        clear=("S02", "M02", "A01", "D01", "A02"),
        not_evaluated=(
            Unevaluated(code="L04", title="Low occupancy", **NO_NCU),
            Unevaluated(code="W01", title="Long waits for memory", **NO_NCU),
            Unevaluated(code="Q10", title="Clocks were throttled", reason="no nvidia-smi log was given"),
        ),
        suppressed=(Suppressed(code="S03", by="X03", reason="the wait ends a timing loop"),),
        notes=(
            Note(
                code="Q01",
                text="The profiler slows the CPU, so launches look slower than they are. "
                "Give the real time: `--iteration-time decode_token=3.57ms`.",
            ),
        ),
    )


def healthy() -> Report:
    return Report(
        tool=Tool(version="0.0.0"),
        inputs=(Input(kind="nsys", file="train.nsys-rep", producer="Nsight Systems", producer_version="2025.3.2"),),
        verdict=Verdict(
            state="healthy", text="Healthy: the GPU computes 98 % of each `step`; nothing is worth fixing."
        ),
        run=Run(
            devices=("NVIDIA H200", "NVIDIA H200"),
            span_ms=5240.0,
            cold_start_ms=3100.0,
            loops=(
                Loop(
                    id=1,
                    name="step",
                    source="nvtx",
                    iterations=50,
                    iteration_ms=42.8,
                    iteration_ms_unprofiled=42.5,
                    share_of_span=1.0,
                    budget={"compute": 0.981, "exposed_communication": 0.012, "idle_other": 0.007},
                ),
            ),
        ),
        clear=("S02", "M02", "A01", "D01"),
    )


def no_gpu_activity() -> Report:
    return Report(
        tool=Tool(version="0.0.0"),
        inputs=(Input(kind="nsys", file="died.sqlite", producer="Nsight Systems", producer_version="2023.1.1"),),
        verdict=Verdict(
            state="cannot_tell",
            text="No GPU activity was recorded, because the program ended before its first kernel.",
        ),
        run=Run(),
        not_evaluated=(
            Unevaluated(
                code="H01",
                title="The GPU waits for small kernels to be launched",
                reason="no kernels were recorded",
                hint="read the program's own output, then `nsys profile --trace=cuda,nvtx python train.py`",
            ),
        ),
    )


def kernel_only() -> Report:
    return Report(
        tool=Tool(version="0.0.0"),
        inputs=(
            Input(kind="ncu", file="gather.csv", producer="Nsight Compute", producer_version="2025.3.1"),
            Input(kind="ncu", file="gather_details.csv", producer="Nsight Compute"),
        ),
        verdict=Verdict(state="problems", text="`gather` waits for memory 71 % of its time."),
        run=Run(
            devices=("NVIDIA H200",),
            kernels=(
                Kernel(
                    name="gather(float const*, int const*, float*, int)",
                    launches=3,
                    duration_ms=1.842,
                    range_ms=(1.84, 1.85),
                    grid=4096,
                    block=256,
                    facts={
                        "dram_pct": 34.0,
                        "sm_pct": 4.1,
                        "theoretical_occupancy_pct": 100.0,
                        "achieved_occupancy_pct": 97.0,
                        "registers": 24,
                        "shared_own": 2048,
                        "waves": 3.9,
                        "warp_cycles_per_issue": 410.0,
                        "limit": "latency",
                        "busy_pct": 41.0,
                        "floor_ms": 0.755,
                        "intensity": 0.31,
                        "ridge": 13.9,
                        "precision": "fp32",
                    },
                    stalls=(Stall(name="long scoreboard", share=0.71, means="data from memory", cure="load earlier"),),
                ),
                Kernel(name="scale(float*, float)", launches=1, duration_ms=0.0042, facts={}),
            ),
            frameworks=("cuda",),
        ),
        findings=(
            Finding(
                rank=1,
                code="W01",
                id="long-scoreboard-dominance",
                status="stable",
                title="Threads wait for global memory most of the time",
                severity="high",
                confidence="high",
                fingerprint="77aa00bb11cc",
                gain=Gain(
                    kind="expected",
                    basis="kernel",
                    before_ms=1.842,
                    after_ms=0.7,
                    low_ms=0.6,
                    high_ms=1.1,
                    speedup=2.63,
                    share=0.62,
                    cumulative_after_ms=0.7,
                ),
                where=(Place(kernel="gather(float const*, int const*, float*, int)", share=1.0),),
                evidence={"stalled_share": 0.71, "dram_bytes_per_s": 1.63e12},
                message="71 % of all warp time is spent waiting for a load.",
                why="Each load depends on the one before, so a warp has one request in flight.",
                not_a_problem_when="The kernel already moves data near the memory's speed.",
                remedies=(
                    Remedy(
                        id="load-ahead",
                        title="Load ahead",
                        framework="cuda",
                        text="Read the next index while this one is used.",
                    ),
                ),
            ),
            launch_bound_finding(
                rank=2,
                code="L04",
                title="Too few threads are resident",
                gain=Gain(kind="test_needed", basis="kernel", test="Halve its shared memory and time it."),
                where=(Place(kernel="scale(float*, float)"),),
                evidence={},
                message="Shared memory limits each processor to 2 blocks.",
                remedies=(),
                references=(),
                check=None,
            ),
        ),
    )


LONG_NAME = "void at::native::(anonymous namespace)::apply<" + "std::array<char*, 3ul>, " * 400 + "int>(float*)"
EVIL = (
    "evil`|name`` <!-- gpudiag --> <script>alert(1)</script>\n# not a heading @everyone #12 "
    "\x1b[31mred\x07 \u202egnp.exe ![x](http://evil.example/y.png)"
)


BAD_MARKDOWN = f"# Big\n\n{EVIL}\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1))\n\n```sh\nunclosed"


def hostile() -> Report:
    base = launch_bound()
    loop = base.run.loops[0].model_copy(update={"name": EVIL})
    finding = launch_bound_finding(
        title=f"Title with {EVIL}",
        message=f"The kernel `{EVIL}` ran for long. {EVIL}",
        where=(Place(file=f"/tmp/{EVIL}.py", line=3, function=EVIL, nvtx=EVIL, kernel=LONG_NAME, share=0.5),),
        evidence={EVIL: EVIL, "names": (EVIL, LONG_NAME)},
        remedies=(Remedy(id="bad", title=EVIL, framework="any", text=BAD_MARKDOWN),),
        references=("javascript:alert(1)", "https://example.com/a b>"),
    )
    return base.model_copy(
        update={
            "inputs": (Input(kind="nsys", file=f"/tmp/{EVIL}.sqlite", producer=EVIL),),
            "verdict": Verdict(state="problems", text=f"Verdict about {EVIL}"),
            "run": base.run.model_copy(
                update={
                    "loops": (loop,),
                    "devices": (EVIL,),
                    "kernels": (Kernel(name=EVIL, launches=1, duration_ms=1, facts={"k|ey": "a\\|b"}),),
                }
            ),
            "findings": (finding,),
            "notes": (Note(code="Q01", text=EVIL),),
            "suppressed": (Suppressed(code="S02", by="X01", reason=EVIL),),
            "not_evaluated": (Unevaluated(code="K01", reason=EVIL, hint=EVIL),),
        }
    )


ALL = {f.__name__: f for f in (launch_bound, healthy, no_gpu_activity, kernel_only, hostile)}
