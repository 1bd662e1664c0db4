"""Tables of other measurements: launches profiled by Nsight Compute, logs of nvidia-smi, profiles of the CPU."""

from __future__ import annotations

from gpudiag.schema.table import ID, Table, col

KERNEL_PROFILES: tuple[Table, ...] = (
    Table("kernel_profile", "one kernel launch measured by Nsight Compute", (
        ID,
        col("input", "integer", "references input", default="0"),
        col("ordinal", "integer", "position in the file", default="0"),
        col("name", "integer", "references name"),
        col("device_name", "varchar", "as the file states it"),
        col("cc", "varchar", "compute capability, for example 9.0", default="'9.0'"),
        col("grid", "bigint", "blocks in the grid", default="1024"),
        col("block", "integer", "threads in a block", default="256"),
        col("duration_ns", "double", "gpu__time_duration", "ns", "100000"),
        col("process", "bigint", "process id the file states"),
        col("stream", "bigint", "stream number the file states"),
    )),
    Table("kernel_metric", "one metric of one profiled launch", (
        col("profile", "integer", "references kernel_profile", default="0"),
        col("metric", "varchar", "raw metric name, the same whichever page it was read from"),
        col("value", "double", "in base units: bytes, seconds→ns, hertz, percent as 0 to 100"),
        col("text", "varchar", "the value when it is not a number"),
    )),
    Table("kernel_rule", "what Nsight Compute's own rule said of a launch", (
        col("profile", "integer", "references kernel_profile", default="0"),
        col("section", "varchar", "section identifier"),
        col("rule", "varchar", "rule name"),
        col("kind", "varchar", "OPT, INF or WRN"),
        col("text", "varchar", "its words"),
        col("estimate", "double", "its estimated speed-up in percent"),
        col("estimate_kind", "varchar", "global (a decrease in run time) or local (use of one unit)"),
    )),
    Table("kernel_line", "one source line of a profiled launch and how often a warp was seen there: the worst of each "
          "launch, 50 at most; only a .ncu-rep names lines", (
        col("profile", "integer", "references kernel_profile", default="0"),
        col("file", "varchar", "source file as compiled; null without -lineinfo, then a row is one instruction"),
        col("line", "integer", "its line"),
        col("sass", "varchar", "the machine instruction with the most samples there"),
        col("samples", "bigint", "times a warp was sampled there"),
        col("not_issued", "bigint", "those in which its scheduler issued nothing at all"),
    )),
)

OTHER_FILES: tuple[Table, ...] = (
    Table("smi_sample", "one field of one nvidia-smi reading", (
        col("time", "bigint", "when, since the first reading; null where the log has no times", "ns"),
        col("device", "integer", "references device", default="0"),
        col("field", "varchar", "what was read, as `nvidia-smi --help-query-gpu` names it; violation.power and "
            "violation.thermal as `nvidia-smi dmon` gives them"),
        col("value", "double", "its value; 1 for active and 0 for not"),
        col("unit", "varchar", "its unit: %, MHz, W, C or MiB; null for counts and yes or no"),
        col("reading", "integer", "which reading it belongs to: a line of the log, from 0", default="0"),
    )),
    Table("cpu_function", "one function of a CPU profile", (
        ID,
        col("file", "varchar", "source file; ~ for what is built into Python or an extension", default="'train.py'"),
        col("line", "integer", "first line; 0 where there is none", default="1"),
        col("function", "varchar", "name"),
        col("calls", "bigint", "number of calls", default="1"),
        col("self_ns", "bigint", "time in itself", "ns", "0"),
        col("cumulative_ns", "bigint", "time with callees", "ns", "0"),
        col("callers", "integer[]", "references cpu_function", default="[]"),
        col("input", "integer", "references input", default="0"),
        col("callers_ns", "bigint[]", "time in itself when each of them called it, in their order", "ns", "[]"),
    )),
)
