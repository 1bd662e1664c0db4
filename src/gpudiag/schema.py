"""The canonical tables: every reader writes these, every view reads these, and nothing else is shared.

One definition serves the DDL, the documentation and the defaults of rule tests. Times are integer ns on the input's
clock; identifiers are dense integers from 0; texts that repeat are interned in `name`. Columns may only be added.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: DuckDB type, unit (empty when it has none), meaning, and the value a test row gets by default."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    default: str = "null"


@dataclass(frozen=True, slots=True)
class Table:
    """A canonical table: what one row is, and the reader that it is kept for where none fills it yet."""

    name: str
    row: str
    columns: tuple[Column, ...]
    reserved: str = ""

    @property
    def ddl(self) -> str:
        body = ", ".join(f'"{c.name}" {c.type}' for c in self.columns)
        return f'create table "{self.name}" ({body})'

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


def _c(name: str, type_: str, meaning: str, unit: str = "", default: str = "null") -> Column:
    return Column(name, type_, meaning, unit, default)


def _word(*words: str) -> str:
    """The type of a text that is one of few: the store keeps its number, which is faster for millions of rows."""
    return "enum(" + ", ".join(f"'{word}'" for word in words) + ")"


_MEMORY = _word("pageable", "pinned", "device", "managed", "array", "unknown")
FRAMES = "struct(function varchar, file varchar, line integer)[]"

_ID = _c("id", "integer", "dense identifier, unique in the store")
_START = _c("start", "bigint", "when it began", "ns", "0")
_END = _c("end", "bigint", "when it ended", "ns", "0")

TABLES: tuple[Table, ...] = (
    Table("name", "a text that occurs more than once", (
        _ID,
        _c("text", "varchar", "the full text: demangled kernel name, API name without version suffix, NVTX message"),
        _c("short", "varchar", "a short form: the kernel's base name; else the same text"),
    )),
    Table("input", "one file read", (
        _ID,
        _c("kind", "varchar", "nsys or ncu", default="'nsys'"),
        _c("producer", "varchar", "the tool that recorded it, for example Nsight Systems"),
        _c("producer_version", "varchar", "its version, as the file states it"),
        _c("schema_version", "varchar", "the export schema's version, as the file states it"),
        _c("file", "varchar", "file name without its folder", default="'capture'"),
        _c("clock_offset_ns", "bigint", "add to this input's times to get the first input's clock", "ns", "0"),
    )),
    Table("capability", "one kind of evidence and whether the capture could have recorded it", (
        _c("input", "integer", "references input", default="0"),
        _c("name", "varchar", "cuda_api, gpu_ops, graph_nodes, sync, events, nvtx, python_samples, os_calls, "
           "um_faults, gpu_metrics, memory, kernel_profiles, or ncu_<section>"),
        _c("state", "varchar", "recorded, not_recorded or unknown", default="'recorded'"),
        _c("how", "varchar", "how that is known"),
    )),
    Table("device", "a GPU", (
        _ID,
        _c("input", "integer", "references input", default="0"),
        _c("ordinal", "integer", "the CUDA device number in the input", default="0"),
        _c("name", "varchar", "marketing name", default="'NVIDIA H200'"),
        _c("sm_count", "integer", "streaming multiprocessors", default="132"),
        _c("clock_hz", "bigint", "maximum SM clock", "Hz", "1980000000"),
        _c("dram_bytes_per_s", "bigint", "peak memory bandwidth", "B/s", "4814000000000"),
        _c("l2_bytes", "bigint", "L2 cache", "B", "62914560"),
        _c("memory_bytes", "bigint", "device memory", "B", "150000000000"),
        _c("max_warps_per_sm", "integer", "resident warps an SM can hold", default="64"),
        _c("max_blocks_per_sm", "integer", "resident blocks an SM can hold", default="32"),
        _c("registers_per_sm", "integer", "32-bit registers an SM has", default="65536"),
        _c("shared_bytes_per_sm", "integer", "shared memory an SM has", "B", "233472"),
        _c("copy_engines", "integer", "asynchronous copy engines", default="3"),
        _c("cc_major", "integer", "compute capability, major", default="9"),
        _c("cc_minor", "integer", "compute capability, minor", default="0"),
    )),
    Table("process", "a traced process that called CUDA, ran on the GPU, or carries annotations", (
        _ID,
        _c("input", "integer", "references input", default="0"),
        _c("pid", "bigint", "operating system process id", default="1"),
        _c("name", "varchar", "executable name", default="'python'"),
        _c("rank", "integer", "rank in a multi-process job, when known"),
    )),
    Table("thread", "a traced thread", (
        _ID,
        _c("process", "integer", "references process", default="0"),
        _c("tid", "bigint", "operating system thread id", default="1"),
        _c("name", "varchar", "thread name", default="'main'"),
    )),
    Table("stream", "a CUDA stream of one context", (
        _ID,
        _c("device", "integer", "references device", default="0"),
        _c("process", "integer", "references process", default="0"),
        _c("context", "integer", "CUDA context number", default="1"),
        _c("number", "bigint", "the stream's number in the input", default="7"),
        _c("kind", "varchar", "null (the legacy default stream), blocking, non_blocking or unknown", default="'null'"),
        _c("priority", "bigint", "stream priority", default="0"),
    )),
    Table("window", "a phase of a process, found by loops/detect.py", (
        _c("process", "integer", "references process", default="0"),
        _c("kind", "varchar", "cold_start, steady_state or teardown", default="'steady_state'"),
        _START, _END,
    )),
    Table("loop", "a repeated unit of work, found by loops/detect.py; the same code in several processes is one loop", (
        _ID,
        _c("name", "varchar", "what the report calls it: the range's own message, or the kernel that opens it "
           "or tells most of it", default="'iter'"),
        _c("nvtx_path", "varchar", "messages from the outermost range to this one, joined by ' / '; null without NVTX"),
        _c("period_source", "varchar", "nvtx, period, or unknown (the whole steady state taken as one iteration)",
           default="'nvtx'"),
        _c("processes", "integer", "how many processes ran it", default="1"),
        _c("steady_iterations", "integer", "iterations counted after warm-up", default="10"),
        _c("steady_ns", "bigint", "time of those iterations, drain included", "ns", "0"),
        _c("iteration_ns", "double", "mean iteration after warm-up", "ns", "0"),
        _c("share_of_span", "double", "its part of the steady time of all loops, 0 to 1", default="1.0"),
    )),
    Table("iteration", "one pass of a loop, from its start to the start of the next; both as late as the GPU finishes "
          "what was queued before, so that the last one holds the drain", (
        _ID,
        _c("loop", "integer", "references loop", default="0"),
        _c("process", "integer", "references process", default="0"),
        _c("thread", "integer", "the thread that drives the loop", default="0"),
        _c("ordinal", "integer", "0 for the first iteration in its process", default="0"),
        _START, _END,
        _c("in_steady_state", "boolean", "false for warm-up iterations", default="true"),
        _c("analysed", "boolean", "false for the later iterations of a very long loop, which would tell nothing new",
           default="true"),
    )),
    Table("api_call", "a CUDA runtime or driver call", (
        _ID, _START, _END,
        _c("process", "integer", "references process", default="0"),
        _c("thread", "integer", "references thread", default="0"),
        _c("parent", "integer", "the enclosing call on its thread; null for outermost calls, which most views use"),
        _c("name", "integer", "references name: the function without suffixes such as _v7000 or _ptsz"),
        _c("correlation", "bigint", "ties the call to what it started, unique within its process"),
        _c("return_code", "integer", "0 for success", default="0"),
    )),
    Table("gpu_op", "anything that occupied the GPU", (
        _ID, _START, _END,
        _c("device", "integer", "references device", default="0"),
        _c("process", "integer", "references process", default="0"),
        _c("stream", "integer", "references stream", default="0"),
        _c("kind", _word("kernel", "memcpy", "memset", "graph"), "what it did", default="'kernel'"),
        _c("name", "integer", "references name; null for copies and sets"),
        _c("api_call", "integer", "the outermost call that started it, when traced"),
        _c("correlation", "bigint", "ties it to the call that started it"),
        _c("bytes", "bigint", "bytes copied or set", "B"),
        _c("copy_kind", _word("host_to_device", "device_to_host", "device_to_device", "peer_to_peer", "host_to_host",
           "unified_host_to_device", "unified_device_to_host", "unified_device_to_device", "unknown"),
           "where from and where to; null unless memcpy"),
        _c("src_kind", _MEMORY, "the memory it came from; null unless memcpy"),
        _c("dst_kind", _MEMORY, "the memory it went to; for memset the memory set"),
        _c("grid", "bigint", "blocks in the grid; null unless kernel"),
        _c("block", "integer", "threads in a block; null unless kernel"),
        *(_c(f"{what}_{side}", "integer", f"{what} size in {side}") for what in ("grid", "block") for side in "xyz"),
        _c("registers", "integer", "registers a thread"),
        _c("static_shared", "integer", "static shared memory a block", "B"),
        _c("dynamic_shared", "integer", "dynamic shared memory a block", "B"),
        _c("local_per_thread", "integer", "local memory a thread", "B"),
        _c("graph_node", "bigint", "node id when the op ran inside a CUDA graph and nodes were traced"),
        _c("graph", "bigint", "graph (exec) id for graph launches traced as one block"),
    )),
    Table("sync", "a wait for the GPU, as the profiler recorded it", (
        _c("api_call", "integer", "the call that waited, when traced"),
        _START, _END,
        _c("process", "integer", "references process", default="0"),
        _c("stream", "integer", "what it waited for; null for the whole context"),
        _c("kind", "varchar", "event, stream_wait_event, stream, context or unknown: by the API's name, the enum is "
           "not to be trusted", default="'stream'"),
    )),
    Table("collective", "one NCCL operation", (
        _c("gpu_op", "integer", "references gpu_op"),
        _c("sequence", "bigint", "position among the process's collectives"),
        _c("group", "varchar", "communicator, when known"),
        _c("op", "varchar", "all_reduce, all_gather, reduce_scatter, broadcast, send_recv or other"),
        _c("bytes", "bigint", "message size, when known: of the whole array, for all_gather and reduce_scatter of one "
           "rank's part", "B"),
        _c("ranks", "integer", "how many ranks the communicator has, when known"),
    )),
    Table("event_edge", "a CUDA event recorded in one stream and waited for in another", (
        _c("from_op", "integer", "the last op before the record"),
        _c("from_stream", "integer", "references stream"),
        _c("to_stream", "integer", "references stream"),
        _c("time", "bigint", "when the wait was enqueued", "ns"),
    )),
    Table("nvtx_range", "an NVTX annotation with a beginning and an end", (
        _ID, _START, _END,
        _c("thread", "integer", "references thread", default="0"),
        _c("process", "integer", "references process", default="0"),
        _c("domain", "varchar", "NVTX domain; null for the default one"),
        _c("name", "integer", "references name: the message"),
        _c("kind", _word("push_pop", "start_end"), "nests on its thread, or may cross threads", default="'push_pop'"),
        _c("depth", "integer", "0 for outermost on its thread and domain", default="0"),
        _c("parent", "integer", "the enclosing push/pop range on the same thread and domain"),
    )),
    Table("nvtx_mark", "an NVTX instant", (
        _c("time", "bigint", "when", "ns"),
        _c("thread", "integer", "references thread", default="0"),
        _c("domain", "varchar", "NVTX domain"),
        _c("name", "integer", "references name"),
    )),
    Table("py_sample", "a Python stack sample", (
        _ID,
        _c("time", "bigint", "when", "ns"),
        _c("thread", "integer", "references thread", default="0"),
        _c("state", "varchar", "the thread's state as recorded: for example holding or waiting for the GIL"),
        _c("frames", FRAMES, "innermost first"),
    )),
    Table("os_call", "an operating system call made through a traced library function", (
        _ID, _START, _END,
        _c("thread", "integer", "references thread", default="0"),
        _c("name", "integer", "references name"),
    )),
    Table("gpu_metric", "a sampled hardware metric", (
        _c("time", "bigint", "when", "ns"),
        _c("device", "integer", "references device", default="0"),
        _c("metric", "varchar", "its name"),
        _c("value", "double", "its value"),
    ), reserved="a reader of sampled GPU metrics"),
    Table("memory_event", "a device allocation or free", (
        _c("time", "bigint", "when", "ns"),
        _c("process", "integer", "references process", default="0"),
        _c("device", "integer", "references device", default="0"),
        _c("op", "varchar", "allocate or free"),
        _c("kind", "varchar", "pageable, pinned, device, managed or array"),
        _c("bytes", "bigint", "size", "B"),
    )),
    Table("overhead", "time the profiler itself took", (
        _START, _END,
        _c("thread", "integer", "references thread"),
        _c("kind", "varchar", "what it did"),
    )),
    Table("diagnostic", "what the profiler itself warned of, and what could not be read of a file", (
        _c("time", "bigint", "when, if it says", "ns"),
        _c("severity", "varchar", "info, warning or error; left_out for what could not be read"),
        _c("text", "varchar", "its words, or ours for left_out"),
    )),
    Table("kernel_profile", "one kernel launch measured by Nsight Compute", (
        _ID,
        _c("input", "integer", "references input", default="0"),
        _c("ordinal", "integer", "position in the file", default="0"),
        _c("name", "integer", "references name"),
        _c("device_name", "varchar", "as the file states it"),
        _c("cc", "varchar", "compute capability, for example 9.0", default="'9.0'"),
        _c("grid", "bigint", "blocks in the grid", default="1024"),
        _c("block", "integer", "threads in a block", default="256"),
        _c("duration_ns", "double", "gpu__time_duration", "ns", "100000"),
        _c("process", "bigint", "process id the file states"),
        _c("stream", "bigint", "stream number the file states"),
    )),
    Table("kernel_metric", "one metric of one profiled launch", (
        _c("profile", "integer", "references kernel_profile", default="0"),
        _c("metric", "varchar", "raw metric name, the same whichever page it was read from"),
        _c("value", "double", "in base units: bytes, seconds→ns, hertz, percent as 0 to 100"),
        _c("text", "varchar", "the value when it is not a number"),
    )),
    Table("kernel_rule", "what Nsight Compute's own rule said of a launch", (
        _c("profile", "integer", "references kernel_profile", default="0"),
        _c("section", "varchar", "section identifier"),
        _c("rule", "varchar", "rule name"),
        _c("kind", "varchar", "OPT, INF or WRN"),
        _c("text", "varchar", "its words"),
        _c("estimate", "double", "its estimated speed-up in percent"),
        _c("estimate_kind", "varchar", "global (a decrease in run time) or local (use of one unit)"),
    )),
    Table("kernel_line", "one source line of a profiled launch and how often a warp was seen there: the worst of each "
          "launch, 50 at most; only a .ncu-rep names lines", (
        _c("profile", "integer", "references kernel_profile", default="0"),
        _c("file", "varchar", "source file as compiled; null without -lineinfo, then a row is one instruction"),
        _c("line", "integer", "its line"),
        _c("sass", "varchar", "the machine instruction with the most samples there"),
        _c("samples", "bigint", "times a warp was sampled there"),
        _c("not_issued", "bigint", "those in which its scheduler issued nothing at all"),
    )),
    Table("op", "a framework operator", (
        _ID, _START, _END,
        _c("thread", "integer", "references thread", default="0"),
        _c("name", "integer", "references name"),
        _c("shapes", "varchar", "input shapes"),
        _c("frames", FRAMES, "Python stack, innermost first"),
    ), reserved="a reader of torch.profiler traces"),
    Table("smi_sample", "one nvidia-smi reading", (
        _c("time", "bigint", "when", "ns"),
        _c("device", "integer", "references device", default="0"),
        _c("field", "varchar", "what was read"),
        _c("value", "double", "its value"),
        _c("unit", "varchar", "its unit"),
    ), reserved="a reader of nvidia-smi logs"),
    Table("cpu_function", "one function of a CPU profile", (
        _ID,
        _c("file", "varchar", "source file"), _c("line", "integer", "first line"),
        _c("function", "varchar", "name"),
        _c("calls", "bigint", "number of calls"),
        _c("self_ns", "bigint", "time in itself", "ns"), _c("cumulative_ns", "bigint", "time with callees", "ns"),
        _c("callers", "integer[]", "references cpu_function"),
    ), reserved="a reader of cProfile files"),
    Table("whole_run", "what was recorded in all, where only a part of it was selected; no row without a selection", (
        _c("start", "bigint", "the time asked for, from; null for the beginning", "ns"),
        _c("end", "bigint", "the time asked for, to; null for the end", "ns"),
        _c("nvtx", "varchar[]", "ranges asked for"),
        _c("devices", "integer[]", "CUDA device numbers asked for"),
        _c("processes", "varchar[]", "processes asked for: ids or names"),
        _c("ranks", "integer[]", "ranks asked for"),
        _c("selected_ns", "bigint", "how long the selected part is: of ranges their sum", "ns"),
        _c("first", "bigint", "when the first CUDA call or GPU operation began, by the first input's clock", "ns"),
        _c("last", "bigint", "when the last one ended", "ns"),
        _c("busy_ns", "bigint", "time in which a GPU worked, over all GPUs", "ns"),
        _c("gpus", "integer", "how many GPUs worked"),
        _c("gpu_ops", "bigint", "how many GPU operations there were"),
        _c("users", "integer", "how many processes ran any"),
    )),
    Table("part", "the selected part of a process's time; no row without a selection of time", (
        _c("process", "integer", "references process", default="0"),
        _START, _END,
        _c("launched", "bigint", "when the host had launched all that belongs to it, as far as known", "ns", "0"),
        _c("begun", "boolean", "whether the process had done anything before it", default="true"),
    )),
    Table("left_out_launch", "a kernel launch that was not selected, of a base name that was", (
        _c("process", "integer", "references process", default="0"),
        _c("name", "integer", "references name: the kernel"),
        _c("called", "bigint", "when the call that launched it began", "ns", "0"),
    )),
    Table("setting", "a threshold that views need, from rules/settings.yaml, overridable", (
        _c("name", "varchar", "the setting"),
        _c("value", "double", "its value, in the unit settings.yaml states"),
    )),
)

BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
