"""CUDA API calls of an Nsight Systems file."""

from __future__ import annotations

from gpudiag.ingest.nsys_ids import API_NAME, Capture, discover_api_names, discover_threads, numbered
from gpudiag.ingest.source import ints

TABLE = "CUPTI_ACTIVITY_KIND_RUNTIME"
TEMPORARY = ("nsys_nested",)

_COLUMNS = ints("start", "end", "globalTid", "correlationId", "nameId", "returnValue")

SANE = 'start >= 0 and "end" >= start and "end" < 4000000000000000000'
"""A row whose times are usable; an end at the far end of the number range is an event that never ended."""


def read_api_calls(capture: Capture) -> int:
    """Fill `api_call`; gives the number of rows dropped because their times make no sense."""
    con = capture.con
    artefacts = con.execute(f"select id from nsys_string where {API_NAME} = 'cuKernelGetName'").fetchall()
    kept = f"nameId is distinct from {artefacts[0][0]}" if len(artefacts) == 1 else (
        f"coalesce(nameId, -1) not in ({', '.join(str(row[0]) for row in artefacts) or '-2'})"
    )  # fmt: skip
    dropped = 0
    for batch in capture.source.batches(TABLE, _COLUMNS):
        # One call to cuKernelGetName a launch is made by the collection itself.
        valid = f"(from {batch} where {kept} and globalTid is not null and {SANE})"
        counts = con.execute(
            f"select count(*), count(*) filter (where globalTid is not null and {SANE}) from {batch} where {kept}"
        ).fetchall()
        dropped += counts[0][0] - counts[0][1]
        discover_threads(capture, valid)
        discover_api_names(capture, valid, "nameId")
        con.execute(
            'insert into api_call by name select n.id, start, "end", t.process, t.id as thread,'
            " coalesce(a.id, u.id) as name, correlationId as correlation,"
            " try_cast(returnValue as integer) as return_code"
            f" from {numbered(capture, 'api_call', valid)} n"
            " join nsys_thread t on t.tid = globalTid"
            " left join nsys_api_name a on a.string = nameId"
            " left join (select min(id) as id from name where text = 'unknown') u on a.id is null"
        )
    _nest(capture, capture.first["api_call"])
    return dropped


def _nest(capture: Capture, first: int) -> None:
    """Give calls made inside another call of their thread its id; most files have none, and are only looked at."""
    con = capture.con
    con.execute("create or replace temp table nsys_nested (id integer, outermost integer)")
    # Only a runtime function (cuda…) calls another traced one (cu…): a thread with one sort has no nested calls.
    mixed = con.execute(
        "select thread from (select distinct thread, name from api_call where id >= $1) a join name on name.id = a.name"
        " group by thread having bool_or(text like 'cuda%') and bool_or(text not like 'cuda%')",
        [first],
    ).fetchall()
    if not mixed:
        return
    threads = ", ".join(str(row[0]) for row in mixed)
    con.execute(
        f'insert into nsys_nested with calls as (select id, thread, start, "end",'
        " max(\"end\") over before as reach, name in (select id from name where text not like 'cuda%') as driver"
        f" from api_call where id >= {first} and thread in ({threads}) window before as (partition by thread"
        ' order by start, "end" desc, id rows between unbounded preceding and 1 preceding)),'
        # Clocks jitter: a call that begins before its predecessor's end but ends after it is not nested, and
        # neither is a runtime function that seems to run inside another.
        ' outer_calls as (from calls where reach is null or "end" > reach or not driver)'
        ' select inner_calls.id, outer_calls.id from (from calls where "end" <= reach and driver) inner_calls'
        " asof join outer_calls on outer_calls.thread = inner_calls.thread and outer_calls.start <= inner_calls.start"
    )
    con.execute(
        "update api_call set parent = coalesce(("
        " select max_by(n.id, a.start) from nsys_nested n join api_call a on a.id = n.id"
        " where n.outermost = nested.outermost and n.id <> nested.id and a.thread = api_call.thread"
        ' and a.start <= api_call.start and a."end" >= api_call."end"'
        ' and (a.start, -a."end", a.id) < (api_call.start, -api_call."end", api_call.id)), nested.outermost)'
        " from nsys_nested nested where nested.id = api_call.id"
    )
