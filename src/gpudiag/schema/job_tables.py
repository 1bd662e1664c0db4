"""Tables of a job of many ranks: reduced facts of each rank, filled only in the store that job rules are judged on."""

from __future__ import annotations

from gpudiag.schema.table import END, ID, START, Table, col

_MEMBER = col("member", "integer", "references job_rank", default="0")
_GROUP = col("group", "integer", "the communicator, as a dense number in the job", default="0")
_SEQUENCE = col("sequence", "bigint", "position among the collectives of the communicator", default="0")

JOBS: tuple[Table, ...] = (
    Table("job_rank", "a rank of the job, from its own capture", (
        ID,
        col("rank", "integer", "the rank's number, when known"),
        col("label", "varchar", "what the report calls it", default="'rank'"),
        col("file", "varchar", "file name without its folder", default="'capture'"),
        col("host", "varchar", "its host's name, or the host's number where only the numbers of its GPUs tell; null "
            "when not known"),
        col("reference", "boolean", "whether it is the rank that the report shows in full", default="false"),
        col("clock_offset_ns", "bigint", "add to this rank's times to get the first rank's clock, by the ends of "
            "their collectives", "ns", "0"),
    )),
    Table("job_iteration", "a rank's own work in an iteration of the job: between its collectives, whatever it waited",
        (
        _MEMBER,
        col("loop", "integer", "references loop, of the reference rank", default="0"),
        col("step", "integer", "0 for the first iteration analysed", default="0"),
        START, END,
        col("compute_ns", "bigint", "time in which its GPU computed", "ns", "0"),
        col("copy_ns", "bigint", "time in which it only copied", "ns", "0"),
        col("idle_ns", "bigint", "time in which it had nothing to do: its host had not launched anything", "ns", "0"),
        col("wait_ns", "bigint", "time in which it only waited for other ranks in collectives", "ns", "0"),
    )),
    Table("job_collective", "a collective of a communicator, over all ranks that took part", (
        _GROUP, _SEQUENCE,
        col("step", "integer", "the iteration of the job that it belongs to", default="0"),
        col("operation", "varchar", "all_reduce, all_gather, reduce_scatter, broadcast, send_recv or other",
            default="'all_reduce'"),
        col("bytes", "bigint", "message size, when known", "B"),
        col("ranks", "integer", "how many ranks took part", default="2"),
        col("transfer_ns", "bigint", "how long it took once the last rank had joined", "ns", "0"),
        col("last", "integer", "the rank that joined last (references job_rank)", default="0"),
    )),
    Table("job_wait", "what a rank waited in a collective for the last rank to join", (
        _MEMBER, _GROUP, _SEQUENCE,
        col("step", "integer", "the iteration of the job that it belongs to", default="0"),
        col("wait_ns", "bigint", "from when this rank joined until the last one did", "ns", "0"),
        col("exposed_ns", "bigint", "time in it in which its GPU computed nothing, waits included", "ns", "0"),
        col("exposed_wait_ns", "bigint", "part of wait_ns in which its GPU computed nothing", "ns", "0"),
    )),
    Table("job_group", "a rank's place in a communicator", (
        _GROUP, _MEMBER,
    )),
    Table("job_kernel", "a kernel of a rank, over the later part of its capture", (
        _MEMBER,
        col("name", "varchar", "the kernel's short name", default="'kernel'"),
        col("ns", "double", "its time in an iteration, all launches together", "ns", "0"),
    )),
    Table("job_place", "where the reference rank's time goes: in the NVTX range of the call that its GPU waited for, "
          "or that started its kernels", (
        _MEMBER,
        col("cause", "varchar", "host, compute or copies", default="'host'"),
        col("path", "varchar", "innermost NVTX range"),
        col("api_calls", "integer[]", "those calls, in the reference rank's own store"),
        col("ns", "double", "its time in an iteration", "ns", "0"),
    )),
)  # fmt: skip
