"""NVTX ranges and marks, and the Python stack samples that Nsight Systems stores among them."""

from __future__ import annotations

from gpudiag.ingest.nsys_api import SANE
from gpudiag.ingest.nsys_enums import case, numbers_of
from gpudiag.ingest.nsys_ids import Capture, discover_threads, intern
from gpudiag.ingest.source import ints, texts

TEMPORARY = ("nsys_nvtx", "nsys_domain")

_SAMPLING = "Python Periodic Sampling"
_UNCLOSED = 'start >= 0 and "end" is null'


def read_nvtx(capture: Capture) -> int:
    """Fill `nvtx_range`, `nvtx_mark` and `py_sample`; gives the rows dropped because their times make no sense."""
    con = capture.con
    columns = ints("start", "end", "eventType", "textId", "globalTid", "domainId", "jsonTextId")
    con.execute(
        'create or replace temp table nsys_nvtx (rid bigint, kind varchar, start bigint, "end" bigint,'
        " globalTid bigint, domain bigint, text varchar, textId bigint, json varchar)"
    )
    con.execute("create or replace temp table nsys_domain (key bigint, domain bigint, name varchar)")
    events, dropped = capture.enums.nvtx_events, 0
    wanted = ", ".join(numbers_of(events, kind) for kind in ("mark", "push_pop", "start_end", "domain"))
    for batch in capture.source.batches("NVTX_EVENTS", columns | texts("text", "jsonText")):
        con.execute(
            f"create or replace temp table nsys_events as select b.rid, {case('eventType', events)} as kind, start,"
            ' "end", globalTid, coalesce(domainId, 0) as domain, coalesce(b.text, s.text) as text,'
            " case when b.text is null then textId end as textId, coalesce(jsonText, j.text) as json"
            f" from {batch} b left join nsys_string s on s.id = textId left join nsys_string j on j.id = jsonTextId"
            f" where eventType in ({wanted})"
        )
        con.execute(
            "insert into nsys_domain select globalTid >> 24, domain, text from nsys_events where kind = 'domain'"
        )
        sane = f"globalTid is not null and case kind when 'mark' then start >= 0 else ({SANE}) or ({_UNCLOSED}) end"
        rows = con.execute(
            f"select count(*) filter (where not coalesce({sane}, false)) from nsys_events where kind <> 'domain'"
        ).fetchall()
        dropped += rows[0][0]
        con.execute(
            'insert into nsys_nvtx select rid, kind, start, "end", globalTid, domain, text, textId, json'
            f" from nsys_events where kind <> 'domain' and {sane}"
        )
        con.execute("drop table nsys_events")
    discover_threads(capture, "nsys_nvtx")
    intern(capture, "select text, text as short from nsys_nvtx where kind <> 'mark' or json is null")
    _ranges(capture)
    _marks(capture)
    _samples(capture)
    con.execute("drop table nsys_nvtx")
    return dropped


_NAMED = (
    "nsys_nvtx e join nsys_thread t on t.tid = e.globalTid"
    " left join (select key, domain, any_value(name) as name from nsys_domain group by all) d"
    " on d.key = t.process_key and d.domain = e.domain"
    " left join name on name.text = e.text and name.short = e.text"
)
_DOMAIN = "case when e.domain <> 0 then coalesce(d.name, 'domain ' || e.domain) end"


def _ranges(capture: Capture) -> None:
    con, first = capture.con, capture.next_id("nvtx_range")
    capture_end = (
        'greatest((select max("end") from api_call), (select max("end") from gpu_op),'
        ' (select max(coalesce("end", start)) from nsys_nvtx))'
    )
    con.execute(
        f"create or replace temp table nsys_range as select {first} - 1 + row_number() over (order by e.rid) as id,"
        f' start, coalesce("end", {capture_end}) as "end", t.id as thread, t.process, {_DOMAIN} as domain,'
        f" name.id as name, e.kind from {_NAMED} where e.kind in ('push_pop', 'start_end')"
    )
    # Depth: ranges open at the start, not counting those that end there. An empty range opens nothing.
    con.execute(
        "create or replace temp table nsys_depth as with edges as ("
        ' select id, thread, domain, start as moment, case when "end" > start then 1 else 2 end as phase,'
        ' start - "end" as tie, case when "end" > start then 1 else 0 end as step from nsys_range'
        " where kind = 'push_pop' union all"
        ' select null, thread, domain, "end", 0, 0, -1 from nsys_range where kind = \'push_pop\' and "end" > start)'
        " select id, coalesce(sum(step) over before, 0) as depth from edges"
        " window before as (partition by thread, domain"
        " order by moment, phase, tie, id rows between unbounded preceding and 1 preceding) qualify id is not null"
    )
    con.execute(
        "insert into nvtx_range by name with r as (select nsys_range.*, coalesce(depth, 0)::integer as depth,"
        " coalesce(domain, '') as d from nsys_range left join nsys_depth using (id)),"
        " pushed as (from r where kind = 'push_pop' and \"end\" > start)"
        ' select r.id::integer as id, r.start, r."end", r.thread, r.process, r.domain, r.name, r.kind, r.depth,'
        " p.id as parent from r asof left join pushed p"
        " on p.thread = r.thread and p.d = r.d and p.depth = r.depth - 1 and p.kind = r.kind and p.start <= r.start"
        " order by r.id"
    )
    con.execute("drop table nsys_range; drop table nsys_depth")


def _marks(capture: Capture) -> None:
    capture.con.execute(
        f"insert into nvtx_mark by name select start as time, t.id as thread, {_DOMAIN} as domain, name.id as name"
        f" from {_NAMED} where e.kind = 'mark' and coalesce(json not like '%{_SAMPLING}%', true) order by e.rid"
    )


def _samples(capture: Capture) -> None:
    """Stacks repeat: each distinct one is decoded once. Function names are HTML-escaped in the export."""
    con, first = capture.con, capture.next_id("py_sample")
    shape = (
        f'{{"{_SAMPLING}": {{"Thread state": "VARCHAR",'
        ' "Frames": [{"Function": "BIGINT", "File": "BIGINT", "Line": "INTEGER"}]}}'
    )
    con.execute(
        "create or replace temp table nsys_sample as select rid, start, globalTid, json from nsys_nvtx"
        f" where kind = 'mark' and json like '%{_SAMPLING}%' and json_valid(json)"
    )
    con.execute(
        "create or replace temp table nsys_stack as with stacks as ("
        f" select json, from_json(json, '{shape}').\"{_SAMPLING}\" as body"
        " from (select distinct json from nsys_sample)),"
        " frames as (select json, unnest(body.Frames) as frame, generate_subscripts(body.Frames, 1) as position"
        " from stacks),"
        " named as (select json, list({'function': replace(replace(replace(replace(f.text,"
        " '&lt;', '<'), '&gt;', '>'), '&quot;', '\"'), '&amp;', '&'), 'file': g.text, 'line': frame.Line}"
        " order by position) as frames from frames left join nsys_string f on f.id = frame.Function"
        " left join nsys_string g on g.id = frame.File group by json)"
        ' select json, body."Thread state" as state, frames from stacks left join named using (json)'
    )
    con.execute(
        f"insert into py_sample by name select {first} - 1 + row_number() over (order by rid) as id, start as time,"
        " t.id as thread, state, coalesce(frames, []) as frames"
        " from nsys_sample join nsys_stack using (json) join nsys_thread t on t.tid = globalTid order by rid"
    )
    con.execute("drop table nsys_sample; drop table nsys_stack")
