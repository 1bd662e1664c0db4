"""Evidence that follows from the tables read, whatever the reader: what is known of each GPU, which call started what.

Thresholds here say when a file counts as broken, not what is slow.
"""

from __future__ import annotations

import duckdb

# Capability → column of `device`, and what it is called in a sentence.
_FACTS = {
    "device_sms": ("sm_count", "the number of its multiprocessors"),
    "device_generation": ("cc_major", "its compute capability"),
    "device_memory": ("memory_bytes", "the size of its memory"),
}
_WITHOUT_WORK = ("smi", "cprofile")
"""Inputs that show no work of the GPU: they neither lack these facts nor prove them."""
# A cut at both ends leaves a few operations without their call; where a fifth have none, the ties themselves are lost.
_MOST_UNTIED = 0.2


def write(con: duckdb.DuckDBPyConnection) -> None:
    """Add to `capability` what follows from the tables of the input read last."""
    row = con.execute("select max(id), arg_max(kind, id) from input").fetchone()
    if row is None or row[0] is None or row[1] in _WITHOUT_WORK:
        return
    input_ = int(row[0])
    found = [*_facts(con, input_), _correlation(con, input_)]
    con.executemany(
        "insert into capability (input, name, state, how) values (?, ?, ?, ?)",
        [(input_, name, state, how) for name, state, how in found],
    )


def _facts(con: duckdb.DuckDBPyConnection, input_: int) -> list[tuple[str, str, str]]:
    """Return whether the GPUs that did something are described; of a file in which none did anything, all of them."""
    columns = ", ".join(f"count({column})" for column, _ in _FACTS.values())
    row = con.execute(
        f"""
        with own as (select * from device where input = $input),
        used as (select distinct device from gpu_op where device in (select id from own))
        select count(*), {columns} from own where id in (from used) or not exists (from used)
        """,
        {"input": input_},
    ).fetchone()
    devices, *known = row or (0, 0, 0, 0)
    result = []
    for (name, (_, what)), count in zip(_FACTS.items(), known, strict=True):
        if devices and count == devices:
            result.append((name, "recorded", "the file describes the GPU"))
        elif count:
            result.append((name, "unknown", f"the file describes {count} of {devices} GPUs"))
        else:
            result.append((name, "not_recorded", f"the file does not describe the GPU, or not {what}"))
    return result


def _correlation(con: duckdb.DuckDBPyConnection, input_: int) -> tuple[str, str, str]:
    """Return whether operations name the calls that started them. Nodes of a graph and unified memory have no call."""
    row = con.execute(
        """
        select count(*), count(*) filter (api_call is null) from gpu_op
        where device in (select id from device where input = ?) and graph_node is null
          and not starts_with(coalesce(copy_kind, ''), 'unified')
        """,
        [input_],
    ).fetchone()
    ops, untied = row or (0, 0)
    if ops and untied >= _MOST_UNTIED * ops:
        return "correlation", "not_recorded", f"{untied} of {ops} GPU operations have no call that started them"
    launches, lost = _launches(con, input_)
    if ops and lost >= _MOST_UNTIED * launches > 0:
        return "correlation", "not_recorded", f"{lost} of {launches} kernel launches have no kernel in the file"
    return "correlation", "recorded", "operations carry the call that started them"


def _launches(con: duckdb.DuckDBPyConnection, input_: int) -> tuple[int, int]:
    """Count the calls that launch a kernel before the last operation begins, and those of which none is in the file.

    What a stream captures into a graph runs when the graph is launched: such calls start nothing themselves.
    """
    con.execute(
        """
        create or replace temp table launching_thread as
        select t.id from thread t join process p on p.id = t.process
        where p.input = $input and p.id in (select process from gpu_op)
        """,
        {"input": input_},
    )
    con.execute(
        """
        create or replace temp table stream_capture as
        select a.thread, a.start, regexp_matches(n.text, 'BeginCapture') as begins
        from api_call a join name n on n.id = a.name
        where regexp_matches(n.text, '^cu(da)?Stream(Begin|End)Capture') and a.thread in (from launching_thread)
        """
    )
    captures, captured = "", ""
    if con.execute("select 1 from stream_capture limit 1").fetchall():  # or millions of calls would be sorted for none
        captures = "asof left join stream_capture c on c.thread = a.thread and c.start <= a.start"
        captured = "and not coalesce(c.begins, false)"
    row = con.execute(
        f"""
        with own as (select api_call, start from gpu_op where device in (select id from device where input = $input))
        select count(*), count(*) filter (a.id not in (select api_call from own where api_call is not null))
        from api_call a {captures}
        where a.name in (select id from name where regexp_matches(text, '^cu(da)?LaunchKernel'))
          and a.start < (select max(start) from own)
          and a.thread in (from launching_thread) {captured}
        """,
        {"input": input_},
    ).fetchone()
    con.execute("drop table launching_thread; drop table stream_capture")
    return row or (0, 0)
