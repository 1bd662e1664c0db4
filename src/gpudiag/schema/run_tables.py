"""Tables of a run: its inputs, devices, processes and threads, the loops found, the part selected, the thresholds."""

from __future__ import annotations

from gpudiag.schema.table import END, ID, START, Table, col

FOUND_IN_FILES: tuple[Table, ...] = (
    Table("name", "a text that occurs more than once", (
        ID,
        col("text", "varchar", "the full text: demangled kernel name, API name without version suffix, NVTX message"),
        col("short", "varchar", "a short form: the kernel's base name; else the same text"),
    )),
    Table("input", "one file read", (
        ID,
        col("kind", "varchar", "nsys, ncu, torch, smi or cprofile", default="'nsys'"),
        col("producer", "varchar", "the tool that recorded it, for example Nsight Systems"),
        col("producer_version", "varchar", "its version, as the file states it"),
        col("schema_version", "varchar", "the export schema's version, as the file states it"),
        col("file", "varchar", "file name without its folder", default="'capture'"),
        col("clock_offset_ns", "bigint", "add to this input's times to get the first input's clock; null where "
            "that is not known, as for a log in local time", "ns", "0"),
        col("host", "varchar", "the name of the machine, where recorded"),
    )),
    Table("capability", "one kind of evidence and whether the capture could have recorded it", (
        col("input", "integer", "references input", default="0"),
        col("name", "varchar", "cuda_api, gpu_ops, graph_nodes, sync, events, nvtx, python_samples, os_calls, "
           "um_faults, gpu_metrics, memory, python_calls, kernel_profiles, ncu_<section>, smi_<part of a log>, or "
           "cpu_functions"),
        col("state", "varchar", "recorded, not_recorded or unknown", default="'recorded'"),
        col("how", "varchar", "how that is known"),
    )),
    Table("device", "a GPU", (
        ID,
        col("input", "integer", "references input", default="0"),
        col("ordinal", "integer", "the CUDA device number in the input", default="0"),
        col("name", "varchar", "marketing name", default="'NVIDIA H200'"),
        col("sm_count", "integer", "streaming multiprocessors", default="132"),
        col("clock_hz", "bigint", "maximum SM clock", "Hz", "1980000000"),
        col("dram_bytes_per_s", "bigint", "peak memory bandwidth", "B/s", "4814000000000"),
        col("l2_bytes", "bigint", "L2 cache", "B", "62914560"),
        col("memory_bytes", "bigint", "device memory", "B", "150000000000"),
        col("max_warps_per_sm", "integer", "resident warps an SM can hold", default="64"),
        col("max_blocks_per_sm", "integer", "resident blocks an SM can hold", default="32"),
        col("registers_per_sm", "integer", "32-bit registers an SM has", default="65536"),
        col("shared_bytes_per_sm", "integer", "shared memory an SM has", "B", "233472"),
        col("copy_engines", "integer", "asynchronous copy engines", default="3"),
        col("cc_major", "integer", "compute capability, major", default="9"),
        col("cc_minor", "integer", "compute capability, minor", default="0"),
    )),
    Table("process", "a traced process that called CUDA, ran on the GPU, or carries annotations", (
        ID,
        col("input", "integer", "references input", default="0"),
        col("pid", "bigint", "operating system process id", default="1"),
        col("name", "varchar", "executable name", default="'python'"),
        col("rank", "integer", "rank in a multi-process job, when known"),
    )),
    Table("thread", "a traced thread", (
        ID,
        col("process", "integer", "references process", default="0"),
        col("tid", "bigint", "operating system thread id", default="1"),
        col("name", "varchar", "thread name", default="'main'"),
    )),
    Table("stream", "a CUDA stream of one context", (
        ID,
        col("device", "integer", "references device", default="0"),
        col("process", "integer", "references process", default="0"),
        col("context", "integer", "CUDA context number", default="1"),
        col("number", "bigint", "the stream's number in the input", default="7"),
        col("kind", "varchar", "null (the legacy default stream), blocking, non_blocking or unknown", default="'null'"),
        col("priority", "bigint", "stream priority", default="0"),
    )),
)

LOOPS: tuple[Table, ...] = (
    Table("window", "a phase of a process, found by loops/detect.py", (
        col("process", "integer", "references process", default="0"),
        col("kind", "varchar", "cold_start, steady_state or teardown", default="'steady_state'"),
        START, END,
    )),
    Table("loop", "a repeated unit of work, found by loops/detect.py; the same code in several processes is one loop", (
        ID,
        col("name", "varchar", "what the report calls it: the range's own message; without NVTX the user's function "
           "that it runs in, or step", default="'iter'"),
        col("marker", "varchar", "of a loop found by repetition: `every`, and the kernel that opens an iteration or "
           "tells most of it"),
        col("nvtx_path", "varchar", "messages from the outermost range to this one, joined by ' / '; null without "
           "NVTX"),
        col("period_source", "varchar", "nvtx, period, or unknown (the whole steady state taken as one iteration)",
           default="'nvtx'"),
        col("processes", "integer", "how many processes ran it", default="1"),
        col("steady_iterations", "integer", "iterations counted after warm-up", default="10"),
        col("steady_ns", "bigint", "time of those iterations, drain included", "ns", "0"),
        col("iteration_ns", "double", "mean iteration of those analysed", "ns", "0"),
        col("repeats", "integer", "how often the same operations come in each iteration of a loop found by repetition; "
           "null where they do not"),
        col("share_of_span", "double", "its part of the steady time of all loops, 0 to 1", default="1.0"),
    )),
    Table("iteration", "one pass of a loop, from its start to the start of the next; both as late as the GPU finishes "
          "what was queued before, so that the last one holds the drain", (
        ID,
        col("loop", "integer", "references loop", default="0"),
        col("process", "integer", "references process", default="0"),
        col("thread", "integer", "the thread that drives the loop", default="0"),
        col("ordinal", "integer", "0 for the first iteration in its process", default="0"),
        START, END,
        col("in_steady_state", "boolean", "false for warm-up iterations", default="true"),
        col("analysed", "boolean", "false for the earlier iterations of a very long loop, which would tell nothing new",
           default="true"),
    )),
    Table("loop_coverage", "GPU-busy time of a process on a device, seen from its loops that are reported; of a "
          "process without one, from those of all. No row where no loop was found", (
        col("process", "integer", "references process", default="0"),
        col("device", "integer", "references device", default="0"),
        col("place", "varchar", "before the first iteration, inside an iteration, between two of them, or after the "
           "last one", default="'inside'"),
        col("busy_ns", "bigint", "how long any stream worked there", "ns", "0"),
    )),
)

RUN: tuple[Table, ...] = (
    Table("whole_run", "what was recorded in all, where only a part of it was selected; no row without a selection", (
        col("start", "bigint", "the time asked for, from; null for the beginning", "ns"),
        col("end", "bigint", "the time asked for, to; null for the end", "ns"),
        col("nvtx", "varchar[]", "ranges asked for"),
        col("devices", "integer[]", "CUDA device numbers asked for"),
        col("processes", "varchar[]", "processes asked for: ids or names"),
        col("ranks", "integer[]", "ranks asked for"),
        col("selected_ns", "bigint", "how long the selected part is: of ranges their sum", "ns"),
        col("first", "bigint", "when the first CUDA call or GPU operation began, by the first input's clock", "ns"),
        col("last", "bigint", "when the last one ended", "ns"),
        col("busy_ns", "bigint", "time in which a GPU worked, over all GPUs", "ns"),
        col("gpus", "integer", "how many GPUs worked"),
        col("gpu_ops", "bigint", "how many GPU operations there were"),
        col("users", "integer", "how many processes ran any"),
    )),
    Table("part", "the selected part of a process's time; no row without a selection of time", (
        col("process", "integer", "references process", default="0"),
        START, END,
        col("launched", "bigint", "when the host had launched all that belongs to it, as far as known", "ns", "0"),
        col("begun", "boolean", "whether the process had done anything before it", default="true"),
    )),
    Table("left_out_launch", "a kernel launch that was not selected, of a base name that was", (
        col("process", "integer", "references process", default="0"),
        col("name", "integer", "references name: the kernel"),
        col("called", "bigint", "when the call that launched it began", "ns", "0"),
    )),
    Table("setting", "a threshold that views need, from rules/settings.yaml, overridable", (
        col("name", "varchar", "the setting"),
        col("value", "double", "its value, in the unit settings.yaml states"),
    )),
)
