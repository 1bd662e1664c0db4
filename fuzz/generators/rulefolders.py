"""Untrusted rules, views and remedies: damaged, endless, or reaching for files outside their folder."""

from __future__ import annotations

from random import Random

from fuzz.generators import bytewise, hostile
from fuzz.given import Given

FOLDER = "my-rules/"
RULE = f"{FOLDER}sync/my-smell.yaml"
VIEW = f"{FOLDER}views/mine.sql"
REMEDY = f"{FOLDER}remedies/my-cure.md"

FILES = {
    RULE: b"""\
code: ZZ91
kind: finding
id: my-smell
title: Something waits
status: draft
severity: high
requires: [cuda_api]
params:
  least: {value: 0, unit: share, why: everything counts here}
query: |
  select loop, nvtx_path, api_calls, share from my_waits where share >= $least
price: {kind: expected, low: [drop_sync], expected: [drop_sync], on: api_calls}
confidence: low
confidence_reason: it is made up
locate: [python, nvtx]
message: >-
  {{ places|length }} places wait, {{ total.share|pct }} of the loop at least {{ params.least|pct }}.
why: Waiting costs.
not_a_problem_when: Never.
what: Looks for it.
remedies: [my-cure]
references: [https://example.org/x]
""",
    VIEW: b"""\
-- What waits.
create view my_waits as
select i.loop, null::varchar as nvtx_path, list(a.id) as api_calls, 0.25::double as share
from api_call a join iteration i on a.start between i.start and i."end"
group by i.loop;
""",
    REMEDY: b"# Wait less\n\nDo not wait.\n\n## PyTorch\n\n```python\npass\n```\n\n## Any framework\n\nDo not.\n",
}

QUERIES = (
    "select loop, 1.0 as share from loop", "select * from read_csv('/etc/passwd')", "select * from '/etc/passwd'",
    "select * from read_text('/proc/self/environ')", "select getenv('HOME') as nvtx_path",
    "select * from duckdb_secrets()", "select * from sqlite_scan('x', 'y')", "pragma version",
    "copy loop to '/tmp/x.csv'", "attach '/tmp/x.db'", "install httpfs", "load httpfs", "set threads = 99",
    "call pragma_version()", "select 1; select 2", "drop table loop", "insert into loop select * from loop",
    "select repeat('x', 2000000000) as nvtx_path",
    "select sum(a.x * b.x * c.x) as share from range(1000000) a(x), range(1000000) b(x), range(1000000) c(x)",
    "with recursive r(n) as (select 1 union all select n + 1 from r) select n as share from r",
    "with recursive r(n) as (select [1] union all select n || n from r) select n from r",
    "select range(1000000000) as api_calls", "select list(x) as api_calls from range(100000000) t(x)",
    "select regexp_matches(repeat('a', 40000), '(a*)*b') as share", "select 'x' as loop",
    "select -1 as loop, [1, 2] as api_calls", "select 1e400 as share, 0 as loop",
    "select 'nan'::double as share, 0 as loop", "select null as loop, 2.0 as share",
    "select 0 as loop, [null, -5, 9999999999] as api_calls", "select 0 as loop, ['a'] as api_calls",
    "select 0 as loop, {'a': 1} as nvtx_path", "select 0 as loop, 0.5 as share from range(999)",
    "select 0 as loop from range(100000)", "select 0 as loop, 0.5 as share, 0.5 as share",
    "select 0 as loop, repeat('<b>', 100000) as nvtx_path", "select 0 as loop, chr(0) || chr(27) as nvtx_path",
    "select 0 as loop, interval '1' day as share", "select 0 as loop, blob '\\xff' as nvtx_path",
    "select unnest(range(10)) as loop", "select current_setting('home_directory') as nvtx_path",
    "select query('select 1')", "select * from query('select 42 as loop')", "select * from query_table('loop')",
    "select error('x')", "select 1/0 as share, 0 as loop", "select now() as nvtx_path", "select * from glob('/*')",
    "select * from sniff_csv('/etc/passwd')", "select json_execute_serialized_sql('x')",
    "select * from pragma_table_info('loop')", "from loop select loop", "select",
    "select 0 as loop, max(\"end\") as duration_ns from gpu_op", "select 0 as loop, -1 as duration_ns",
    "select * from information_schema.tables", "select * from duckdb_settings()",
    "select 0 as loop, nextval('x') as share", "select * from (values (0, 0.5)) v(loop, share)",
    "select $least as share, 0 as loop", "select $nothing as share", "select ? as share",
    "select " + "(" * 3000 + "1" + ")" * 3000 + " as share", "select " + " + ".join(["1"] * 5000) + " as share",
    "select 0 as loop, list(id) as gpu_ops, 1.0 as share from gpu_op",
)  # fmt: skip
TEMPLATES = (
    "{{ ''.__class__.__mro__ }}", "{{ places.__init__.__globals__ }}", "{% for a in range(10**9) %}x{% endfor %}",
    "{{ 'x' * 10**10 }}", "{{ range(10**9)|list }}", "{% include 'x' %}", "{% import 'os' as os %}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{{ lipsum(n=10**6) }}", "{{ nothing }}",
    "{{ places[99].x }}", "{{ 1/0 }}", "{{ '%0999999999d'|format(1) }}",
    "{% set x = 'a' %}{% for i in range(60) %}{% set x = x ~ x %}{% endfor %}{{ x }}",
    "{{ places|map('string')|join }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{", "{% if %}", "",
    "{{ total.share ** 99999999 }}", "{{ 9 ** 9 ** 9 }}", "{{ places|tojson }}", "{{ places|attr('__class__') }}",
    "{{ ('a'|center(10**9)) }}", "{{ 'x'|indent(10**9) }}", "{{ params.least|dur }}",
    "{{ 'a' ~ '\\x00' ~ '\\ud800' }}", "{{ places|batch(10**9)|list }}", "{{ '<script>' }} | ` ::error",
    "{{ dict(a=1)|xmlattr }}", "{{ 'a'.format_map({}) }}", "{{ places|length|bytes|dur|pct }}",
    "{{ 'x'|wordwrap(0) }}", "{{ namespace(a=1).a }}", "{{ [1,2,3]|slice(0)|list }}", "{{ self }}",
    "{{ 'a'|replace('', 'b' * 10**8) }}", "{{ 'x'.join(['y'] * 10**9) }}", "\n\n\n", "{# " + "x" * 9999 + " #}",
)  # fmt: skip
VIEWS = (
    "create view my_waits as select * from read_csv('/etc/passwd');",
    "create view my_waits as select 1; drop table loop;", "create table my_waits as select 1;",
    "create macro my_waits(x) as x;",
    "create macro m() as table select * from '/etc/passwd';\ncreate view my_waits as select * from m();",
    "create view loop as select 1;", "create or replace view api_call as select 1;",
    "create view my_waits as select * from my_waits;",
    "create view a as select * from b;\ncreate view b as select * from a;", "-- nothing",
    "create view main.my_waits as select 1;", "create temp view my_waits as select 1;",
    "create view memory.my_waits as select 1;",
    "create view my_waits as with recursive r(n) as (select 1 union all select n + 1 from r) select n as loop from r;",
    "create macro f(x) as f(x + 1);\ncreate view my_waits as select f(1) as loop;", "create function my_waits() as 1;",
    "create view \"a\"\"b\" as select 1;",
    "create view my_waits(" + ", ".join(f"c{k}" for k in range(3000)) + ") as select 1;",
    "-- materialised: x\ncreate view my_waits as select repeat('x', 2000000000) as nvtx_path;",
    "create view my_waits as selec", "/* create view x as */ create view my_waits as select 1 as loop",
    "create secret x (type s3);", "create schema x;", "create sequence s;",
    "create view my_waits as pivot loop on name;",
    "create view my_waits as select loop, 1.0 as share from iteration at (version => 1);",
    "create view my_waits as select * from getvariable('x');",
)  # fmt: skip
YAMLS = (
    "!!python/object/apply:os.system ['id']", "&a [*a, *a]", "*x", "{a: &b [1,2], <<: *b}", "? [complex]\n: x",
    "!!binary aGk=", "!!timestamp 2020-01-01", "1e999", ".inf", ".nan", "0x1F", "1_000", "~", "{}", "[]",
    "'" + "a" * 99_999 + "'", "[" * 100, "{" * 39 + "}" * 39, "|\n   x\n  y", ">-\n", "!!set {a, b}", "!!omap [a: b]",
    "%YAML 9.9", "--- x\n--- y", "\t", "@x", "`x`", "2020-13-99", "on", "-0", "9" * 5000, "\u0661",
)  # fmt: skip

NAMES = ("a b", "x.yml", "settings.yaml", ".hidden/x.yaml", "deep/" * 40 + "x.yaml", "views/v.yaml")


def query(given: Given, random: Random) -> None:
    """Another query, hostile or only wrong."""
    lines = given.content.split(b"\n")
    put = f"  {random.choice(QUERIES)}".encode()
    given.content = b"\n".join(put if b"from my_waits" in line else line for line in lines)


def template(given: Given, random: Random) -> None:
    key = random.choice((b"message: >-\n  ", b"title: "))
    given.content = _after(
        given.content,
        key,
        random.choice(TEMPLATES).replace("\n", "\n  ").encode("utf-8", "replace"),
        quoted=key == b"title: ",
    )


def view(given: Given, random: Random) -> None:
    given.files[VIEW] = random.choice(VIEWS).encode()


def yaml(given: Given, random: Random) -> None:
    """Another value of a key: a tag, an alias, a number that is none."""
    lines = given.content.split(b"\n")
    keys = [number for number, line in enumerate(lines) if b": " in line]
    for at in random.sample(keys, min(len(keys), random.choice((1, 1, 3)))):
        put = random.choice(YAMLS) if random.random() < 0.7 else repr(hostile.value(random))[:5000]
        lines[at] = lines[at].split(b": ")[0] + b": " + put.encode("utf-8", "replace")
    given.content = b"\n".join(lines)


def lines(given: Given, random: Random) -> None:
    name = random.choice(sorted(given.files))
    if name.startswith(FOLDER):
        found = given.files[name].split(b"\n")
        at = random.randrange(len(found))
        kind = random.randrange(3)
        if kind == 0:
            del found[at]
        elif kind == 1:
            found.insert(at, random.choice(found))
        else:
            found[at] = b"  " + found[at]
        given.files[name] = b"\n".join(found)


def content(given: Given, random: Random) -> None:
    name = random.choice([name for name in sorted(given.files) if name.startswith(FOLDER)] or sorted(given.files))
    given.files[name] = bytewise.damaged(
        random.choice(sorted(bytewise.STEPS)), given.files[name], random, b"x: y\n" * 9
    )


def files(given: Given, random: Random) -> None:
    """Files that are no files, under strange names, too many or too large."""
    kind = random.randrange(8)
    if kind == 0:
        given.special[f"{FOLDER}sync/{random.choice(('pipe.yaml', 'x.yaml'))}"] = random.choice(
            ("fifo", "link /dev/zero", "link .", "folder", "link nowhere")
        )
    elif kind == 1:
        given.files[f"{FOLDER}views/more.sql"] = given.files.get(VIEW, b"")
    elif kind == 2:
        given.files[f"{FOLDER}{random.choice(NAMES)}"] = b"a: b\n"
    elif kind == 3:
        given.content += b"# " + b"x" * 300_000
    elif kind == 4:
        del given.files[
            random.choice([name for name in sorted(given.files) if name.startswith(FOLDER)] or sorted(given.files))
        ]
    elif kind == 5:
        for number in range(30):
            made = (
                given.files.get(RULE, b"")
                .replace(b"ZZ91", b"ZY%02d" % number)
                .replace(b"my-smell", b"my-smell-%d" % number)
            )
            given.files[f"{FOLDER}sync/my-smell-{number}.yaml"] = made
    elif kind == 6:
        given.files[f"{FOLDER}sync/my-smell.test.yaml"] = b"x: " + random.choice(YAMLS).encode()
    else:
        given.files[f"{FOLDER}host/launch-bound.yaml"] = (
            given.files.get(RULE, b"").replace(b"ZZ91", b"H01").replace(b"my-smell", b"launch-bound")
        )


STEPS = {
    "query": query,
    "template": template,
    "view": view,
    "yaml": yaml,
    "lines": lines,
    "content": content,
    "files": files,
}


def _after(content: bytes, key: bytes, put: bytes, *, quoted: bool) -> bytes:
    head, found, tail = content.partition(key)
    if not found:
        return content
    rest = tail.partition(b"\n")[2]
    if quoted:
        put = b"'" + put.replace(b"'", b"''").replace(b"\n", b" ") + b"'"
    return head + key + put + b"\n" + rest
