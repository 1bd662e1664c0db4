"""Rules that never end, eat memory, answer without end, or are too many; and the process that they run in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpudiag.evaluate import sandbox_worker
from gpudiag.evaluate.sandbox import Limits
from paths import ROOT
from untrusted import ENDLESS, answers, make_store

pytestmark = pytest.mark.slow

SOON = Limits(seconds=1.0, seconds_in_all=60.0)
HONEST = "select id from gpu where id = 0"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("store") / "store.duckdb")


def test_what_never_ends_is_stopped_and_the_rule_after_it_is_run(file: Path) -> None:
    endless = [
        "select count(*) as n from generate_series(date '1970-01-01', date '2290-01-01', interval '1 microsecond')",
        "select levenshtein(repeat('a', (1e6)::bigint), repeat('b', (1e6)::bigint)) as n",
    ]
    *stopped, honest = answers(file, [*endless, HONEST], limits=SOON)
    assert stopped == ["was stopped after 1 s, the most that a rule of yours may take"] * len(endless)
    assert honest == ({"id": 0},)


def test_memory_is_not_given_and_the_rule_after_it_is_run(file: Path) -> None:
    greedy = [
        "select len(repeat('x', $big::bigint)) as n",  # DuckDB's own limit lets it through
        "select len(list(range)) as n from range($big::bigint)",
        "select len(string_agg(name, ',')) as n from gpu, range($big::bigint)",
        "select format('{:>1000000000}', 1) as a",
        "select replace(repeat('a', (1e6)::bigint), 'a', repeat('a', (1e6)::bigint)) as a",
        "select list_resize([1], (1e9 * 1e6)::bigint) as a",
    ]
    little = Limits(seconds=8.0, seconds_in_all=60.0, database_mb=128, process_mb=512)
    *stopped, honest = answers(file, [*greedy, HONEST], limits=little)
    for query, answer in zip(greedy, stopped, strict=True):
        assert isinstance(answer, str), query
        assert "was stopped" in answer or "Out of Range" in answer, query
    assert honest == ({"id": 0},)


def test_all_rules_together_have_an_end(file: Path) -> None:
    """A thousand rules of ten seconds each would be a hang."""
    found = answers(file, [ENDLESS] * 1000, limits=Limits(seconds=0.8, seconds_in_all=1.0))
    assert 1 <= sum("was stopped" in answer for answer in found) <= 3
    assert found[-1] == "was not started: those before it took 1 s, the most for all together"
    assert len(found) == 1000


def test_rules_that_are_slow_without_being_stopped_have_an_end(file: Path) -> None:
    slow = "select sum(range) as n from range((1e6 * 100)::bigint)"
    found = answers(file, [slow] * 300, limits=Limits(seconds=9.0, seconds_in_all=1.0))
    assert isinstance(found[0], tuple)
    assert "was not started" in found[-1]


def test_all_answers_together_have_an_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_worker, "MAX_BYTES_IN_ALL", 1 << 20)
    found = answers(file, ["select repeat('x', (1e6 * 0.5)::bigint) as a"] * 6)
    assert [isinstance(answer, tuple) for answer in found] == [True, True, True, False, False, False]
    assert "was not started: those before it gave 1 MB" in found[-1]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select repeat('x', (1e6)::bigint) as a from range(100)", "more than 8 MB"),
        ("select * from gpu a, gpu b, gpu c, gpu d, gpu e, gpu f", "more than 1000 rows"),
    ],
)
def test_one_answer_has_an_end(file: Path, query: str, words: str) -> None:
    [answer] = answers(file, [query])
    assert words in answer


def test_regular_expressions_of_duckdb_do_not_blow_up(file: Path) -> None:
    """RE2 takes time in the length of the text, and refuses repetitions that would not."""
    found = answers(
        file,
        [
            "select regexp_matches(repeat('a', (1e6)::bigint), '(a*)*b') as a",
            "select regexp_matches(repeat('a', (1e6)::bigint), '^(a|a)*$') as a",
            "select regexp_matches(repeat('a', (1e6)::bigint), '(a{1000}){1000}') as a",
            "select repeat('a', (1e6)::bigint) like repeat('%a', (1e3)::bigint) || 'b' as a",
        ],
    )
    assert found[0] == ({"a": False},)
    assert found[1] == ({"a": True},)
    assert "invalid repetition size" in found[2]
    assert found[3] == ({"a": False},)


def test_views_that_multiply_are_stopped(file: Path) -> None:
    views = "create view v0 as select 1 as a; " + "".join(
        f"create view v{n} as select x.a from v{n - 1} x, v{n - 1} y where x.a = y.a; " for n in range(1, 40)
    )
    [answer] = answers(file, ["select a from v39"], views, limits=SOON)
    assert isinstance(answer, str)


# --- the process ----------------------------------------------------------------------------------------------------


def in_child(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits | None = None) -> Any:
    """The answer of a child that runs `code`, as if a rule had escaped from DuckDB into Python."""
    (tmp_path / "escaped.py").write_text(
        f"import gpudiag.evaluate.sandbox_worker as child\ndef work(q):\n    {code}\nchild.serve(lambda job: work)\n"
    )
    started = subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        return started([*command[:-2], str(tmp_path / "escaped.py")], **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    return sandbox_worker.ask("escaped", {}, [None], limits or Limits(seconds=5.0))[0]


ESCAPES = {
    "a file is read": "open('/etc/hostname').read()",
    "a file is written": "open('/tmp/gpudiag-stolen', 'w').write('x')",
    "its own environment is read": "open('/proc/self/environ').read()",
    "a socket is opened": "__import__('socket').socket()",
    "a program is started": "__import__('os').popen('id').read()",
    "a pipe is made": "__import__('os').pipe()",
    "a folder is listed": "__import__('os').listdir('/')",
}


@pytest.mark.parametrize("code", ESCAPES.values(), ids=ESCAPES)
def test_nothing_can_be_opened_any_more(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = f"try: return {{'got': str({code})}}\n    except OSError as error: return {{'refused': str(error)}}"
    answer = in_child(tried, tmp_path, monkeypatch)
    assert "Too many open files" in answer["refused"]


def test_the_child_sees_no_secret_of_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("PYTHONSTARTUP", "/tmp/x.py")
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    with secret.open() as held:
        os.set_inheritable(held.fileno(), True)
        code = "import os; return {'env': sorted(os.environ), 'cwd': os.getcwd()}"
        answer = in_child(code, tmp_path, monkeypatch)
        fds = in_child(
            f"import os; os.fstat({held.fileno()}); return {{'size': os.fstat({held.fileno()}).st_size}}",
            tmp_path,
            monkeypatch,
        )
    allowed = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "MALLOC_ARENA_MAX", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
               "LD_LIBRARY_PATH", "PYTHONHOME", "LC_CTYPE"}  # fmt: skip
    assert set(answer["env"]) <= allowed
    assert answer["cwd"] == "/"
    assert isinstance(fds, str) or fds["size"] != 7


def test_the_child_finds_packages_where_its_parent_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On clusters only the user's PYTHONPATH may lead there, of which nothing else reaches the child."""
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    answer = in_child("import os; return {'folders': os.environ['PYTHONPATH']}", tmp_path, monkeypatch)
    folders = answer["folders"].split(os.pathsep)
    assert str(Path(duckdb.__file__).resolve().parents[1]) in folders
    assert str(tmp_path) not in folders


LIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "an answer without end": ("import os\n    while True: os.write(3, b'x' * 65536)", lambda a: "crashed" in a),
    "no answer": ("import os; os._exit(0)", lambda a: isinstance(a, str)),
    "no JSON": ("import os; os.write(3, b'{\\n'); os._exit(0)", lambda a: isinstance(a, str)),
    "JSON too deep": ("import os; os.write(3, b'[' * 100000 + b'\\n'); os._exit(0)", lambda a: isinstance(a, str)),
    "what it prints": ("print('{\"rows\": []}', flush=True); return {'refused': 'x'}", lambda a: a == {"refused": "x"}),
    "a reason without end": (
        "return {'refused': 'x' * 10**6}",
        lambda a: len(a["refused"]) == sandbox_worker.MAX_REASON,
    ),
}


@pytest.mark.parametrize(("code", "holds"), LIES.values(), ids=LIES)
def test_the_parent_believes_no_answer_that_is_none(
    code: str, holds: Callable[[Any], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_worker, "_LAST_WORD_SECONDS", 0.5)  # one that still writes has none
    assert holds(in_child(code, tmp_path, monkeypatch, Limits(seconds=3.0)))


PARENT = """
import sys
from pathlib import Path
from untrusted import answers
from gpudiag.evaluate.sandbox import Limits
from paths import ROOT
endless = "select count(*) as n from range((1e9 * 1e9)::bigint)"  # and without a need for memory, which would end it
answers(Path(sys.argv[1]), [endless], limits=Limits(seconds=60.0))
"""


def children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_child_outlives_its_parent(file: Path, number: int) -> None:
    paths = [str(ROOT / "src"), str(ROOT / "tests")]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(file)], env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stderr=subprocess.DEVNULL,
    ) as parent:  # fmt: skip
        until = time.monotonic() + 120
        while not (born := children_of(parent.pid)) and time.monotonic() < until:
            time.sleep(0.02)
        assert born
        time.sleep(0.3)  # it limits itself first
        parent.send_signal(number)
        parent.wait(120)
    until = time.monotonic() + 50
    while (left := [pid for pid in born if is_running(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_that_sleeps_ends_by_itself(file: Path, tmp_path: Path) -> None:
    """Where the kernel does not tell it of its parent's end, the alarm does: a sleeping rule uses no time of a CPU."""
    job = {
        "questions": [None],
        "limits": {"process_mb": 1152, "seconds": 9, "alarm": 0, "parent": os.getpid(), "seconds_in_all": 9},
    }
    code = (
        "import time\nimport gpudiag.evaluate.sandbox_worker as child\n"
        "child.serve(lambda job: lambda q: time.sleep(600))"
    )
    (tmp_path / "sleeps.py").write_text(code)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "sleeps.py")], input=json.dumps(job), text=True, timeout=300, check=False,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == -signal.SIGALRM
