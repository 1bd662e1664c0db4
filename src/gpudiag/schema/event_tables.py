"""Tables of what happened at a time: calls, operations, waits, annotations, samples."""

from __future__ import annotations

from gpudiag.schema.table import END, FRAMES, ID, START, Table, col, word

MEMORY = word("pageable", "pinned", "device", "managed", "array", "unknown")

EVENTS: tuple[Table, ...] = (
    Table("api_call", "a CUDA runtime or driver call", (
        ID, START, END,
        col("process", "integer", "references process", default="0"),
        col("thread", "integer", "references thread", default="0"),
        col("parent", "integer", "the enclosing call on its thread; null for outermost calls, which most views use"),
        col("name", "integer", "references name: the function without suffixes such as _v7000 or _ptsz"),
        col("correlation", "bigint", "ties the call to what it started, unique within its process"),
        col("return_code", "integer", "0 for success", default="0"),
        col("op", "integer", "references op: the innermost operator that made the call, when recorded"),
        col("recorded_before", "integer", "Python functions and operators recorded on its thread since the outermost "
           "call before it; null where it records none"),
        col("operators_before_ns", "bigint", "time on its thread since the call before it in operators that make "
           "CUDA calls, without those among them that make none; null where no operators are recorded", "ns"),
    )),
    Table("op", "a framework operator that made CUDA calls", (
        ID, START, END,
        col("thread", "integer", "references thread", default="0"),
        col("name", "integer", "references name"),
        col("shapes", "varchar", "input shapes"),
        col("module", "varchar", "the nn.Module that it ran in, with its number: Linear_3; in the backward pass "
           "that of the forward operator"),
        col("pass", word("forward", "backward"), "of training, when known"),
    )),
    Table("gpu_op", "anything that occupied the GPU", (
        ID, START, END,
        col("device", "integer", "references device", default="0"),
        col("process", "integer", "references process", default="0"),
        col("stream", "integer", "references stream", default="0"),
        col("kind", word("kernel", "memcpy", "memset", "graph"), "what it did", default="'kernel'"),
        col("name", "integer", "references name; null for copies and sets"),
        col("api_call", "integer", "the outermost call that started it, when traced"),
        col("correlation", "bigint", "ties it to the call that started it"),
        col("bytes", "bigint", "bytes copied or set", "B"),
        col("copy_kind", word("host_to_device", "device_to_host", "device_to_device", "peer_to_peer", "host_to_host",
           "unified_host_to_device", "unified_device_to_host", "unified_device_to_device", "unknown"),
           "where from and where to; null unless memcpy"),
        col("src_kind", MEMORY, "the memory it came from; null unless memcpy"),
        col("dst_kind", MEMORY, "the memory it went to; for memset the memory set"),
        col("grid", "bigint", "blocks in the grid; null unless kernel"),
        col("block", "integer", "threads in a block; null unless kernel"),
        *(col(f"{what}_{side}", "integer", f"{what} size in {side}") for what in ("grid", "block") for side in "xyz"),
        col("registers", "integer", "registers a thread"),
        col("static_shared", "integer", "static shared memory a block", "B"),
        col("dynamic_shared", "integer", "dynamic shared memory a block", "B"),
        col("local_per_thread", "integer", "local memory a thread", "B"),
        col("graph_node", "bigint", "node id when the op ran inside a CUDA graph and nodes were traced"),
        col("graph", "bigint", "graph (exec) id for graph launches traced as one block"),
    )),
    Table("sync", "a wait for the GPU, as the profiler recorded it", (
        col("api_call", "integer", "the call that waited, when traced"),
        START, END,
        col("process", "integer", "references process", default="0"),
        col("stream", "integer", "what it waited for; null for the whole context"),
        col("kind", "varchar", "event, stream_wait_event, stream, context or unknown: by the API's name, the enum is "
           "not to be trusted", default="'stream'"),
        col("after_op", "integer", "of a wait for an event: the last op before it was recorded, when traced"),
    )),
    Table("collective", "one NCCL operation", (
        col("gpu_op", "integer", "references gpu_op"),
        col("sequence", "bigint", "position among the process's collectives"),
        col("group", "varchar", "communicator, when known"),
        col("op", "varchar", "all_reduce, all_gather, reduce_scatter, broadcast, send_recv or other"),
        col("bytes", "bigint", "message size, when known: of the whole array, for all_gather and reduce_scatter of one "
           "rank's part", "B"),
        col("ranks", "integer", "how many ranks the communicator has, when known"),
    )),
    Table("event_edge", "a CUDA event recorded in one stream and waited for in another", (
        col("from_op", "integer", "the last op before the record"),
        col("from_stream", "integer", "references stream"),
        col("to_stream", "integer", "references stream"),
        col("time", "bigint", "when the wait was enqueued", "ns"),
    )),
    Table("nvtx_range", "an NVTX annotation with a beginning and an end", (
        ID, START, END,
        col("thread", "integer", "references thread", default="0"),
        col("process", "integer", "references process", default="0"),
        col("domain", "varchar", "NVTX domain; null for the default one"),
        col("name", "integer", "references name: the message"),
        col("kind", word("push_pop", "start_end"), "nests on its thread, or may cross threads", default="'push_pop'"),
        col("depth", "integer", "0 for outermost on its thread and domain", default="0"),
        col("parent", "integer", "the enclosing push/pop range on the same thread and domain"),
    )),
    Table("nvtx_mark", "an NVTX instant", (
        col("time", "bigint", "when", "ns"),
        col("thread", "integer", "references thread", default="0"),
        col("domain", "varchar", "NVTX domain"),
        col("name", "integer", "references name"),
    )),
    Table("py_sample", "a Python stack sample", (
        ID,
        col("time", "bigint", "when", "ns"),
        col("thread", "integer", "references thread", default="0"),
        col("state", "varchar", "the thread's state as recorded: for example holding or waiting for the GIL"),
        col("frames", FRAMES, "innermost first"),
    )),
    Table("module_call", "a call of an nn.Module that no other module which was called twice or more made", (
        ID, START, END,
        col("process", "integer", "references process", default="0"),
        col("thread", "integer", "references thread", default="0"),
        col("name", "integer", "references name: its class, with its number"),
        col("depth", "integer", "how many other modules made it", default="0"),
    )),
    Table("os_call", "an operating system call made through a traced library function", (
        ID, START, END,
        col("thread", "integer", "references thread", default="0"),
        col("name", "integer", "references name"),
    )),
    Table("gpu_metric", "a sampled hardware metric", (
        col("time", "bigint", "when", "ns"),
        col("device", "integer", "references device", default="0"),
        col("metric", "varchar", "its name"),
        col("value", "double", "its value"),
    ), reserved="a reader of sampled GPU metrics"),
    Table("memory_event", "an allocation or free of device memory, by the driver or by a framework's pool", (
        col("time", "bigint", "when", "ns"),
        col("process", "integer", "references process", default="0"),
        col("device", "integer", "references device", default="0"),
        col("thread", "integer", "references thread; null where it is not recorded"),
        col("op", "varchar", "allocate or free"),
        col("kind", "varchar", "pageable, pinned, device, managed or array; pool for what a framework's pool gave out"),
        col("bytes", "bigint", "size", "B"),
        col("address", "bigint", "where the memory begins; null where it is not recorded"),
        col("allocated", "bigint", "of a pool: what the program holds of it after this", "B"),
        col("reserved", "bigint", "of a pool: what it has from the driver after this", "B"),
    )),
    Table("overhead", "time the profiler itself took", (
        START, END,
        col("thread", "integer", "references thread"),
        col("kind", "varchar", "what it did"),
    )),
    Table("diagnostic", "what the profiler itself warned of, and what could not be read of a file", (
        col("time", "bigint", "when, if it says", "ns"),
        col("severity", "varchar", "info, warning or error; left_out for what could not be read"),
        col("text", "varchar", "its words, or ours for left_out"),
    )),
)
