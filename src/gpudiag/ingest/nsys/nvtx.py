"""NVTX ranges and marks, and the Python stack samples that Nsight Systems stores among them."""

from __future__ import annotations

from gpudiag.ingest.nsys.api import SANE
from gpudiag.ingest.nsys.enums import case, numbers_of
from gpudiag.ingest.nsys.ids import LONGEST, Capture, discover_threads, save, thread_map
from gpudiag.ingest.nsys.owners import owned
from gpudiag.ingest.sources.base import ints, texts

TEMPORARY = ("nsys_string", "nsys_nvtx", "nsys_domain", "nsys_range", "nsys_depth", "nsys_stack")

_SAMPLING = "Python Periodic Sampling"

DEEPEST = 500
"""Levels of nesting that are kept: a path names all of them, and programs nest a few dozen."""

_FRAMES = 200
"""Innermost frames of a stack that are kept."""

_UNCLOSED = 'start >= 0 and "end" is null'
_SANE = f"globalTid is not null and case kind when 'mark' then start >= 0 else ({SANE}) or ({_UNCLOSED}) end"


def read_nvtx(capture: Capture) -> None:
    """Fill `nvtx_range`, `nvtx_mark` and `py_sample`."""
    con = capture.con
    if not capture.source.has("NVTX_EVENTS"):
        return
    _stage(capture)
    groups = con.execute(
        f'select kind, sampled, coalesce({_SANE}, false), globalTid, count(*), count("end") from nsys_nvtx group by all'
    ).fetchall()
    capture.dropped += sum(group[4] for group in groups if group[0] != "domain" and not group[2])
    valid = [group for group in groups if group[0] != "domain" and group[2]]
    discover_threads(capture, {group[3] for group in valid})
    ranges = [group for group in valid if group[0] != "mark"]
    marks = [group for group in valid if group[0] == "mark"]
    if ranges or not all(group[1] for group in marks):
        _intern(capture)
        con.execute(
            "create or replace temp table nsys_domain as select globalTid >> 24 as key, domain, min(text) as name"
            " from nsys_nvtx where kind = 'domain' group by all"
        )
    if ranges:
        _ranges(capture, unclosed=any(group[4] > group[5] for group in ranges))
    if not all(group[1] for group in marks):
        _marks(capture)
    if any(group[1] for group in marks):
        _samples(capture)


def _stage(capture: Capture) -> None:
    """Put the events to be read into `nsys_nvtx`, with their texts, and the file's texts into `nsys_string`."""
    con, events = capture.con, capture.enums.nvtx_events
    con.execute("create or replace temp table nsys_string (id bigint, text varchar)")
    for batch in capture.source.batches("StringIds", ints("id") | texts("value")):
        con.execute(f"insert into nsys_string select id, min(value) from {batch} group by id")
    columns = ints("start", "end", "eventType", "textId", "globalTid", "domainId", "jsonTextId")
    wanted = ", ".join(numbers_of(events, kind) for kind in ("mark", "push_pop", "start_end", "domain"))
    start = "create or replace temp table nsys_nvtx as"
    for raw in capture.source.batches("NVTX_EVENTS", columns | texts("text", "jsonText")):
        batch = owned(capture.alone, capture.source, "NVTX_EVENTS", raw, "globalTid")
        con.execute(
            f'{start} select b.rid, {case("eventType", events)} as kind, start, "end", globalTid,'
            f" coalesce(domainId, 0) as domain, {_clipped('coalesce(b.text, s.text)')} as text,"
            " coalesce(jsonText, j.text) as json,"
            f" eventType in ({numbers_of(events, 'mark')}) and coalesce(json like '%{_SAMPLING}%', false) as sampled"
            f" from {batch} b left join nsys_string s on s.id = textId left join nsys_string j on j.id = jsonTextId"
            f" where eventType in ({wanted})"
        )
        start = "insert into nsys_nvtx"


def _clipped(text: str) -> str:
    """SQL for a text of usual length."""
    return f"case when strlen({text}) > {LONGEST} then left({text}, {LONGEST}) else {text} end"


def _intern(capture: Capture) -> None:
    """Intern the messages, which may be as many as the events: in the store, not here."""
    save(capture, "name")
    ((added,),) = capture.con.execute(
        f"insert into name select {capture.next['name']} - 1 + row_number() over (order by text), text, text"
        " from (select distinct text from nsys_nvtx"
        f" where (kind not in ('mark', 'domain') or kind = 'mark' and json is null) and text is not null and {_SANE}) m"
        " anti join name on name.text = m.text and name.short = m.text"
    ).fetchall()
    capture.next["name"] += added
    capture.names_in_store |= added > 0


def _named(capture: Capture) -> str:
    return (
        f"nsys_nvtx e join {thread_map(capture)} on t.tid = e.globalTid"
        " left join nsys_domain d on d.key = t.tid >> 24 and d.domain = e.domain"
        " left join name on name.text = e.text and name.short = e.text"
    )


_DOMAIN = "case when e.domain <> 0 then coalesce(d.name, 'domain ' || e.domain) end"


def _ranges(capture: Capture, *, unclosed: bool) -> None:
    con, first = capture.con, capture.next["nvtx_range"]
    capture_end = (
        'greatest((select max("end") from api_call), (select max("end") from gpu_op),'
        ' (select max(coalesce("end", start)) from nsys_nvtx))'
    )
    end = f'coalesce("end", {capture_end}) as "end"' if unclosed else '"end"'
    ((added,),) = con.execute(
        f"create or replace temp table nsys_range as select {first} - 1 + row_number() over (order by e.rid) as id,"
        f" start, {end}, t.thread, t.process, {_DOMAIN} as domain,"
        f" name.id as name, e.kind from {_named(capture)} where e.kind in ('push_pop', 'start_end') and {_SANE}"
    ).fetchall()
    capture.next["nvtx_range"] += added
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
        f" where r.depth < {DEEPEST} order by r.id"
    )
    ((deeper,),) = con.execute(f"select count(*) from nsys_depth where depth >= {DEEPEST}").fetchall()
    if deeper:
        text = f"{deeper} annotations nested more than {DEEPEST} deep"
        con.execute("insert into diagnostic values (null, 'left_out', ?)", [text])


def _marks(capture: Capture) -> None:
    capture.con.execute(
        f"insert into nvtx_mark by name select start as time, t.thread, {_DOMAIN} as domain, name.id as name"
        f" from {_named(capture)} where e.kind = 'mark' and not sampled and {_SANE}"
    )


def _unescaped(text: str) -> str:
    """SQL for a text that the export HTML-escapes: functions and files of Python frames."""
    return f"replace(replace(replace(replace({text}, '&lt;', '<'), '&gt;', '>'), '&quot;', '\"'), '&amp;', '&')"


def _samples(capture: Capture) -> None:
    """Stacks repeat: each distinct one is decoded once. A function whose name the profiler lost has none."""
    con, first = capture.con, capture.next["py_sample"]
    shape = (
        f'{{"{_SAMPLING}": {{"Thread state": "VARCHAR",'
        ' "Frames": [{"Function": "BIGINT", "File": "BIGINT", "Line": "INTEGER"}]}}'
    )
    function = f"nullif({_unescaped('f.text')}, '[Unknown]')"
    samples = f"(from nsys_nvtx where sampled and json_valid(json) and {_SANE})"
    con.execute(
        "create or replace temp table nsys_stack as with stacks as ("
        f" select row_number() over () as stack, json, from_json(json, '{shape}').\"{_SAMPLING}\" as body"
        f" from (select distinct json from {samples})),"
        f" frames as (select stack, unnest(body.Frames[:{_FRAMES}]) as frame,"
        f" generate_subscripts(body.Frames[:{_FRAMES}], 1) as position from stacks),"
        f" named as (select stack, list({{'function': {function}, 'file': {_unescaped('g.text')},"
        " 'line': frame.Line}"
        " order by position) as frames from frames left join nsys_string f on f.id = frame.Function"
        " left join nsys_string g on g.id = frame.File group by stack)"
        ' select json, body."Thread state" as state, frames from stacks left join named using (stack)'
    )
    ((added,),) = con.execute(
        f"insert into py_sample by name select {first} - 1 + row_number() over (order by rid) as id, start as time,"
        f" t.thread, state, coalesce(frames, []) as frames from {samples}"
        f" join nsys_stack using (json) join {thread_map(capture)} on t.tid = globalTid"
    ).fetchall()
    capture.next["py_sample"] += added
