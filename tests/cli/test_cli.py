"""The command line: what it passes on, what it prints where, and its exit codes. All behind it are stubs."""

from __future__ import annotations

import json
import os
import platform
import re
import runpy
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import samples
from evaluation.packed import plain
from gpudiag import __version__
from gpudiag.cli import main
from gpudiag.cli.sections import Group
from gpudiag.errors import GpudiagError
from gpudiag.model import Job, JobRank, Report
from gpudiag.options import Options
from gpudiag.report import formats
from paths import CAPTURES


class Stub:
    """Stands for `gpudiag.pipeline`; remembers how it was called."""

    def __init__(self) -> None:
        self.report: Report = samples.launch_bound()
        self.error: BaseException | None = None
        self.call: dict[str, Any] = {}

    def explain(self, paths: Any, options: Options) -> Report:
        asked = {field.name: getattr(options, field.name) for field in fields(options) if field.name != "progress"}
        self.call = {"paths": tuple(paths), **asked}
        options.progress("reading decode.sqlite")
        if self.error:
            raise self.error
        return self.report


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    stub = Stub()
    module = types.ModuleType("gpudiag.pipeline")
    module.report = stub.explain  # type: ignore[attr-defined]
    module.pictured = lambda *args, **rest: (stub.explain(*args, **rest), None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpudiag.pipeline", module)
    monkeypatch.setattr("gpudiag.pipeline", module, raising=False)
    monkeypatch.setattr("gpudiag.cli.rules._library", lambda rule_dirs: types.SimpleNamespace(by_code={}))
    return stub


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_explain_prints_markdown(pipeline: Stub) -> None:
    result = run("explain", "decode.sqlite")
    assert result.exit_code == 0
    assert result.stdout.startswith("# gpudiag: `decode.sqlite`\n")
    assert result.stderr == ""


@pytest.mark.parametrize(("options", "whole"), [((), False), (("--full",), True), (("--format", "markdown"), True)])
def test_a_terminal_gets_one_screen(
    pipeline: Stub, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], whole: bool
) -> None:
    for name in ("is_terminal", "on_terminal"):
        monkeypatch.setattr(f"gpudiag.report.terminal.{name}", lambda stream: stream is sys.stdout)
    monkeypatch.setenv("PAGER", "cat")
    result = run("explain", "decode.sqlite", *options)
    assert result.exit_code == 0
    assert "The GPU waits for small kernels to be launched" in result.stdout
    assert ("Why it costs time" in result.stdout) == whole
    assert ("--full" in result.stdout) != whole


@pytest.mark.parametrize("options", [(), ("-o", "job.json"), ("--format", "html")])
def test_rank_pages_want_a_page_to_stand_beside(pipeline: Stub, options: tuple[str, ...]) -> None:
    result = run("explain", "ranks", "--rank-pages", *options)
    assert result.exit_code == 2
    assert "--rank-pages writes pages beside a page: add -o" in result.stderr


def test_files_that_are_no_job_get_no_rank_pages(pipeline: Stub, tmp_path: Path) -> None:
    result = run("explain", "decode.sqlite", "--rank-pages", "-o", str(tmp_path / "job.md"))
    assert result.exit_code == 0
    assert "no pages of ranks are written" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["job.md"]


def test_a_slow_rank_gets_a_page_beside_its_job(pipeline: Stub, tmp_path: Path) -> None:
    members = tuple(
        JobRank(label=f"rank {n}", rank=n, file=f"job.rank{n}.sqlite", more=0.2, waits=0.0, slow=n == 1)
        for n in range(2)
    )
    job = Job(
        ranks=2, reference="rank 0", iterations=1, iteration_ms=1.0, waiting=0.0, at_median_ms=1.0, members=members
    )  # fmt: skip
    pipeline.report = pipeline.report.model_copy(update={"job": job})
    files = ["ranks/job.rank0.sqlite", "ranks/job.rank1.sqlite"]
    assert run("explain", *files, "--rank-pages", "-o", str(tmp_path / "job.md")).exit_code == 0
    assert pipeline.call["paths"] == (Path("ranks/job.rank1.sqlite"),)
    assert "[`rank 1`](job.rank1.md)" in (tmp_path / "job.md").read_text("utf-8")
    assert (tmp_path / "job.rank1.md").exists()


def test_a_file_alone_is_explained(pipeline: Stub, tmp_path: Path) -> None:
    result = run("report.sqlite", "--format", "json")
    assert (result.exit_code, pipeline.call["paths"]) == (0, (Path("report.sqlite"),))
    assert json.loads(result.stdout)["schema_version"] == 1
    run(str(tmp_path), "b.sqlite")
    assert pipeline.call["paths"] == (tmp_path, Path("b.sqlite"))


def test_help_is_a_command_too() -> None:
    assert run("help").stdout == run("--help").stdout
    assert run("help", "rules", "show").stdout.startswith("Usage: main rules show")
    assert "no such command 'nonsense'" in run("help", "nonsense").stderr


def test_record_says_what_to_run() -> None:
    text = run("record", "python", "train.py", "--epochs", "2 x").stdout
    assert "nsys profile --trace=cuda,nvtx" in text
    assert "-o report python train.py --epochs '2 x'\n" in text
    assert "--python-sampling=true" in text
    assert "--python-sampling" not in run("record", "./solver", "-n", "3").stdout


@pytest.mark.parametrize("command", [("explain", "a.sqlite"), ("next", "a.sqlite"), ("diff", "a.sqlite", "b.sqlite")])
def test_an_ending_of_no_format_is_refused(pipeline: Stub, tmp_path: Path, command: tuple[str, ...]) -> None:
    result = run(*command, "-o", str(tmp_path / "report.pdf"))
    assert (result.exit_code, pipeline.call, list(tmp_path.iterdir())) == (2, {}, [])
    assert ".pdf; end it in .md" in result.stderr
    assert result.stderr.count("\n") == 1


def test_explain_prints_json(pipeline: Stub) -> None:
    result = run("explain", "decode.sqlite", "--format", "json")
    assert json.loads(result.stdout)["findings"][0]["code"] == "H01"


def test_arguments_reach_the_pipeline(pipeline: Stub, tmp_path: Path) -> None:
    times = ("--iteration-time", "3.57ms", "--iteration-time", "a=b=12 us")
    rest = ("--set", "H01.min_share=3e-1", "--no-cache")
    run("explain", "a.sqlite", "b.csv", "--rules", str(tmp_path), *rest, *times)
    assert pipeline.call == pipeline.call | {
        "paths": (Path("a.sqlite"), Path("b.csv")),
        "rule_dirs": (tmp_path,),
        "overrides": {"H01.min_share": 0.3},
        "iteration_times": {"": 3.57e6, "a=b": 12e3},
        "cached": False,
    }


@pytest.mark.parametrize("argument", ["fast", "3.57", "-1ms", "0ms", "x=", "1e3ms"])
def test_a_time_without_sense_is_refused(pipeline: Stub, argument: str) -> None:
    result = run("explain", "a.sqlite", f"--iteration-time={argument}")
    assert result.exit_code == 2
    assert "is not like 3.57ms" in result.stderr


@pytest.mark.parametrize("argument", ["2d=100000s", "99999999999999999999999s"])
def test_a_time_above_a_day_is_refused(pipeline: Stub, argument: str) -> None:
    result = run("explain", "a.sqlite", f"--iteration-time={argument}")
    assert (result.exit_code, pipeline.call) == (2, {})
    assert "is longer than a day" in result.stderr


@pytest.mark.parametrize("value", ["foo", "nan", "1e999", "1..2"])
def test_a_threshold_that_is_no_number_is_named(pipeline: Stub, value: str) -> None:
    result = run("explain", "a.sqlite", "--set", f"H01.x={value}")
    assert result.exit_code == 2
    assert f"'{value}' is no number" in result.stderr


@pytest.mark.parametrize("argument", ["H01=1", "H01.x", "H01.x="])
def test_a_threshold_without_sense_is_refused(pipeline: Stub, argument: str) -> None:
    result = run("explain", "a.sqlite", "--set", argument)
    assert result.exit_code == 2
    assert "is not like H01.min_share=0.3" in result.stderr


def test_output_goes_to_the_file_alone(pipeline: Stub, tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    result = run("explain", "decode.sqlite", "-o", str(out))
    assert result.output == ""
    assert out.read_text("utf-8").startswith("# gpudiag")
    assert list(tmp_path.iterdir()) == [out]


def test_an_error_is_one_sentence_and_leaves_the_old_report(pipeline: Stub, tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    out.write_text("old")
    pipeline.error = GpudiagError("a.sqlite is damaged: export it again.")
    result = run("explain", "a.sqlite", "-o", str(out))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "gpudiag: a.sqlite is damaged: export it again.\n"
    assert out.read_text() == "old"


def test_a_place_that_cannot_be_written_is_one_sentence(pipeline: Stub, tmp_path: Path) -> None:
    result = run("explain", "a.sqlite", "-o", str(tmp_path / "missing" / "report.md"))
    assert result.exit_code == 2
    assert result.stderr.startswith("gpudiag: ")
    assert "cannot be written" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", ["itself", "link", "hard link"])
def test_an_input_is_never_overwritten(pipeline: Stub, tmp_path: Path, kind: str) -> None:
    file, out = tmp_path / "a.sqlite", tmp_path / "out"
    file.write_text("capture")
    if kind == "itself":
        out = tmp_path / "." / "a.sqlite"
    else:
        (out.symlink_to if kind == "link" else out.hardlink_to)(file)
    result = run("explain", str(file), "-o", str(out))
    assert (result.exit_code, pipeline.call, file.read_text()) == (2, {}, "capture")
    assert result.stderr == f"gpudiag: {out} is an input: give another place with -o, or it would be overwritten.\n"


def test_a_folder_is_no_place_for_the_report(pipeline: Stub, tmp_path: Path) -> None:
    result = run("explain", "a.sqlite", "-o", str(tmp_path))
    assert (result.exit_code, pipeline.call) == (2, {})
    assert result.stderr.startswith(f"gpudiag: {tmp_path} is a folder")
    assert result.stderr.count("\n") == 1


def test_an_error_stays_on_one_line(pipeline: Stub) -> None:
    pipeline.error = GpudiagError("a\nb.sqlite: damaged (\x1b[31m\n\n).")
    assert run("explain", "a.sqlite").stderr == "gpudiag: a b.sqlite: damaged (\\x1b[31m ).\n"


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("in_query", [False, True])
def test_a_signal_to_end_unwinds(
    pipeline: Stub, monkeypatch: pytest.MonkeyPatch, name: str, code: int, in_query: bool
) -> None:
    number, tidied = signal.Signals[name], []
    monkeypatch.setattr("gpudiag.cli.root.signal.getsignal", lambda _: signal.SIG_DFL)
    monkeypatch.setattr("gpudiag.cli.root._listen", lambda *_: None)  # it would end the tests
    monkeypatch.setattr("gpudiag.cli.root._hush", lambda: None)
    before = [(each, signal.getsignal(each)) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]

    def explain(*_: object, **__: object) -> Report:
        try:
            signal.raise_signal(number)
        except SystemExit:
            if in_query:
                raise RuntimeError("Query interrupted") from None
            raise
        finally:
            tidied.append(True)
        raise AssertionError("the signal was not noticed")

    monkeypatch.setattr("gpudiag.pipeline.report", explain)
    try:
        result = run("explain", "a.sqlite")
    finally:
        signal.set_wakeup_fd(-1)
        for each, handler in before:
            signal.signal(each, handler)
    assert (result.exit_code, result.output, tidied) == (code, "", [True])


_ENDLESS = """
import sqlite3, sys
from pathlib import Path
from gpudiag import pipeline
from gpudiag.tempdir import work_folder
from gpudiag.cli import main
def report(*_):
    with work_folder():
        print("began", flush=True)
        endless = "with recursive n(x) as (select 1 union all select 1 from n) select sum(x) from n"
        sqlite3.connect(":memory:").execute(endless)
pipeline.report = report
main(["explain", "a.sqlite"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_ends_a_query_that_never_would(name: str, code: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _ENDLESS]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.Signals[name])
        try:
            printed = process.communicate(timeout=300)
        finally:
            process.kill()
    assert (process.returncode, printed, list(tmp_path.iterdir())) == (code, ("", ""), [])


_READING = """
import sys, time
from gpudiag.cli import main
from gpudiag.ingest.nsys import gpu_ops
from gpudiag.ingest.sources import sqlite
from gpudiag.ingest.sources.base import ints
sqlite.PAGES_FROM = 1  # as in a large export
def between_two_steps(con):
    time.sleep(3600)
def in_a_step(con):
    con.execute("create temp table endless as select sum(a.range * b.range) from range(10000000) a, range(10000000) b")
def read(capture):
    for _ in capture.source.batches("CUPTI_ACTIVITY_KIND_KERNEL", ints("start")):
        print("began", flush=True)
        globals()[sys.argv[2]](capture.con)
gpu_ops.read_gpu_ops = read
main(["explain", sys.argv[1]])
"""


@pytest.mark.capture
@pytest.mark.parametrize("moment", ["between_two_steps", "in_a_step"])
def test_an_interrupted_first_read_is_silent(moment: str, tmp_path: Path) -> None:
    """The rows of a real export are half read, in a transaction that is still open, or that the end aborts."""
    capture, cache, work = tmp_path / "slow.sqlite", tmp_path / "cache", tmp_path / "work"
    capture.write_bytes(plain(CAPTURES / "launch_bound_fp32" / "slow.columns").read_bytes())
    work.mkdir()
    command = [sys.executable, "-c", _READING, str(capture), moment]
    env = {**os.environ, "TMPDIR": str(work), "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGINT)
        try:
            printed = process.communicate(timeout=300)
        finally:
            process.kill()
    assert (process.returncode, printed, list(work.iterdir())) == (130, ("", ""), [])


_LOADING = """
import signal, sys
from pathlib import Path
from gpudiag import pipeline
from gpudiag.cli import main
def report(*_):
    try:
        import loading
    except SystemExit:
        print("an exception met the module")
        raise
pipeline.report = report
sys.path.insert(0, sys.argv[1])
main(["explain", "a.sqlite"])
"""


def test_a_signal_while_a_module_loads_ends_cleanly(tmp_path: Path) -> None:
    (tmp_path / "loading.py").write_text("import signal\nsignal.raise_signal(signal.SIGTERM)\n")
    command = [sys.executable, "-c", _LOADING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "code", "words"), [(1, 2, "Standard output is closed"), (2, 0, "# H01")], ids=["stdout", "stderr"]
)
def test_a_closed_stream_is_no_crash(closed: int, code: int, words: str) -> None:
    command = f'exec {closed}>&-; exec "$0" -m gpudiag rules show H01'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert words in (done.stderr if closed == 1 else done.stdout)
    assert "Traceback" not in done.stderr


def test_an_interruption_is_quiet(pipeline: Stub) -> None:
    pipeline.error = KeyboardInterrupt()
    result = run("explain", "a.sqlite")
    assert (result.exit_code, result.output) == (130, "")


def test_a_bug_is_not_hidden(pipeline: Stub) -> None:
    pipeline.error = ZeroDivisionError()
    assert isinstance(run("explain", "a.sqlite").exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("severity", "status", "gate", "code"),
    [
        ("high", "draft", "high", 1),
        ("high", "stable", "low", 1),
        ("medium", "stable", "high", 0),
        ("info", "stable", "info", 1),
        ("high", "deprecated", "info", 0),
    ],
)
def test_fail_on(pipeline: Stub, severity: str, status: str, gate: str, code: int) -> None:
    finding = samples.launch_bound_finding(severity=severity, status=status)
    pipeline.report = pipeline.report.model_copy(update={"findings": (finding,)})
    result = run("explain", "a.sqlite", "--fail-on", gate)
    assert result.exit_code == code
    assert result.stdout.startswith("# gpudiag")


def test_smaller_things_and_healthy_reports_do_not_fail(pipeline: Stub) -> None:
    pipeline.report = pipeline.report.model_copy(update={"findings": ()})
    assert run("explain", "a.sqlite", "--fail-on", "info").exit_code == 0


def test_verbose_names_the_stages_on_stderr(pipeline: Stub) -> None:
    result = run("explain", "a.sqlite", "--verbose")
    assert result.stderr == "gpudiag: reading decode.sqlite\n"


def test_explain_wants_a_file() -> None:
    assert run("explain").exit_code == 2


@pytest.fixture
def authoring(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    stub = types.SimpleNamespace(
        rule_index=lambda library: "| code | title |",
        rule_page=lambda library, code: f"# {code}\n",
        check=lambda dirs, only=None, jobs=1: [f"{d}: {only}" for d in dirs],
        scaffold=lambda directory, family, smell, code: [directory / family / f"{smell}.yaml"],
        schema_json=lambda: "{}",
    )
    monkeypatch.setitem(sys.modules, "gpudiag.authoring.scaffold", stub)
    monkeypatch.setattr("gpudiag.authoring.scaffold", stub, raising=False)
    monkeypatch.setattr("gpudiag.cli.rules._library", lambda rule_dirs: types.SimpleNamespace(by_code={}))
    return stub


def test_rules_commands(authoring: types.SimpleNamespace, tmp_path: Path) -> None:
    assert run("rules", "list").stdout == "| code | title |\n"
    assert run("rules", "show", "H01").stdout == "# H01\n"
    assert run("rules", "schema").stdout == "{}\n"
    new = run("rules", "new", "sync", "my-smell", "--code", "U01", "--dir", str(tmp_path))
    assert new.stdout == f"{tmp_path / 'sync' / 'my-smell.yaml'}\n"


def test_rules_check_fails_on_a_problem(authoring: types.SimpleNamespace, tmp_path: Path) -> None:
    good, bad = run("rules", "check"), run("rules", "check", str(tmp_path), "--only", "U01")
    assert (good.exit_code, good.stdout) == (0, "no problems\n")
    assert (bad.exit_code, bad.stdout) == (1, f"{tmp_path}: U01\n")


def test_an_unknown_rule_is_one_sentence(authoring: types.SimpleNamespace) -> None:
    def unknown(library: object, code: str) -> str:
        raise GpudiagError(f"There is no rule {code!r}.")

    authoring.rule_page = unknown
    result = run("rules", "show", "Z99")
    assert (result.exit_code, result.output) == (2, "gpudiag: There is no rule 'Z99'.\n")


def test_version() -> None:
    first, *others = run("--version").stdout.splitlines()
    assert first == f"gpudiag {__version__}"
    assert platform.python_version() in others[0]
    assert f"duckdb {metadata.version('duckdb')}, polars {metadata.version('polars')}, numba" in others[1]


def test_version_says_what_cannot_be_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "nsys: not on the PATH, so .nsys-rep files cannot be opened" in run("--version").stdout
    (tmp_path / "nsys").touch(mode=0o755)
    assert f"nsys: {tmp_path / 'nsys'}\n" in run("--version").stdout


def test_version_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom gpudiag.cli import main\n"
        "try: main(['--version'])\nexcept SystemExit: pass\n"
        "print('loaded:', *sorted({'duckdb', 'polars', 'numba', 'pydantic', 'numpy', 'rich'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded:\n")


def test_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gpudiag", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("gpudiag", run_name="__main__")
    assert capsys.readouterr().out.startswith(f"gpudiag {__version__}\n")


def every_command(group: click.Group = main, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, *path, name)


@pytest.mark.parametrize("path", [path for path, _ in every_command()], ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    long, short = run(*path, "--help"), run(*path, "-h")
    assert (long.exit_code, short.stdout) == (0, long.stdout)
    assert long.stdout.startswith(f"Usage: main {' '.join(path)}")


def test_what_a_command_is_for_is_never_cut_short() -> None:
    text = " ".join(run("--help").stdout.split())
    for name, command in main.commands.items():
        sentence = " ".join((command.help or "").partition("\n\n")[0].split()).split(". ")[0].rstrip(".")
        assert f"{name} {sentence}" in text


@pytest.mark.parametrize(
    "path", [path for path, command in every_command() if not isinstance(command, click.Group)], ids=" ".join
)
def test_every_command_names_its_exit_codes(path: tuple[str, ...]) -> None:
    assert "\nExit codes:\n" in run(*path, "--help").stdout


def test_the_help_lists_every_command_once_and_by_use() -> None:
    text = run("--help").stdout
    assert [text.count(f"\n  {name} ") for name in main.commands] == [1] * len(main.commands)
    assert text.index("Read captures:") < text.index("\n  explain ") < text.index("\n  rules ")
    assert text.index("Exit codes:") < text.index("NO_COLOR")


def test_a_command_without_a_heading_is_listed_all_the_same() -> None:
    group = Group(
        "tool", commands=[click.Command("new", help="Is new."), click.Command("old")], order={"Old": ["old", "gone"]}
    )
    text = CliRunner().invoke(group, ["--help"]).stdout
    assert text.index("Old:\n  old") < text.index("Other commands:\n  new  Is new.")
    assert "gone" not in text


def test_the_help_of_explain_tells_every_format() -> None:
    text = run("explain", "--help").stdout.partition("\nFormats:\n")[2].partition("\n\n")[0]
    for form in formats.ALL:
        assert re.search(rf"^  {form.name} +{form.about.split()[0]}", text, re.MULTILINE)


def test_examples_of_the_help_can_be_copied() -> None:
    assert "\n  gpudiag explain report.sqlite --iteration-time step=3.57ms\n" in run("explain", "--help").stdout


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("report.md", "# gpudiag"),
        ("report.JSON", "{\n"),
        ("report.html", "<!doctype html>"),
        ("report.txt", "# gpudiag"),
        ("report", "# gpudiag"),
    ],
)
def test_the_format_is_chosen_by_the_suffix(pipeline: Stub, tmp_path: Path, name: str, start: str) -> None:
    run("explain", "a.sqlite", "-o", str(tmp_path / name))
    assert (tmp_path / name).read_text("utf-8").startswith(start)


@pytest.mark.parametrize("name", ["report.htm", "REPORT.HTM"])
def test_the_short_ending_of_html_gives_html(pipeline: Stub, tmp_path: Path, name: str) -> None:
    run("explain", "a.sqlite", "-o", str(tmp_path / name))
    assert (tmp_path / name).read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["report.pdf", "report.xlsx", "report.jsn"])
def test_an_ending_of_no_format_is_refused_at_once(pipeline: Stub, tmp_path: Path, name: str) -> None:
    result = run("explain", "a.sqlite", "-o", str(tmp_path / name))
    assert result.exit_code == 2 and "no format ends in ." in result.stderr and ".html (html)" in result.stderr
    assert not pipeline.call and not (tmp_path / name).exists()


def test_a_format_that_was_asked_for_wins_over_the_suffix(pipeline: Stub, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    run("explain", "a.sqlite", "-o", str(out), "--format", "markdown")
    assert out.read_text("utf-8").startswith("# gpudiag")


COLOUR = re.compile(r"\x1b\[[\d;]*\b(3[0-7]|9[0-7]|38)[\d;]*m")


def on_a_terminal(*args: str, **changes: str) -> str:
    """What a person sees whose terminal both stdout and stderr are."""
    leader, follower = os.openpty()
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")}
    command = subprocess.Popen(
        [sys.executable, "-m", "gpudiag", *args],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=env | {"TERM": "xterm-256color", "COLUMNS": "100"} | changes,
    )
    os.close(follower)
    seen = b""
    try:
        while part := os.read(leader, 65536):
            seen += part
    except OSError:  # Linux ends a terminal that nobody holds with an error
        pass
    os.close(leader)
    command.wait()
    return seen.decode()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("saved") / "report.json"
    path.write_text(formats.render(samples.launch_bound(), "json"))
    return str(path)


def test_a_terminal_gets_colour(saved: str) -> None:
    seen = on_a_terminal("explain", saved)
    assert COLOUR.search(seen)
    assert "decode.py:31" in seen


def test_no_color_takes_the_colour_away(saved: str) -> None:
    seen = on_a_terminal("explain", saved, NO_COLOR="1")
    assert not COLOUR.search(seen)
    assert "decode.py:31" in seen


@pytest.mark.slow
def test_a_dumb_terminal_gets_plain_text(saved: str) -> None:
    seen = on_a_terminal("explain", saved, TERM="dumb")
    assert not {"\x1b", "\u2588"} & set(seen)
    assert "where  decode.py:31" in seen
    assert "**Where:**" in on_a_terminal("explain", saved, "--full", TERM="dumb")


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"FORCE_COLOR": "1"}])
def test_a_pipe_gets_markdown_whatever_the_environment_says(saved: str, changes: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpudiag", "explain", saved, "--verbose"],
        env={**os.environ, "TERM": "xterm-256color", **changes},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == formats.render(samples.launch_bound(), "markdown")
    assert "\x1b" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.parametrize("args", [("explain", "nothing.sqlite"), ("explain", "--nonsense"), ("rules", "show", "Z99")])
def test_messages_carry_no_codes(args: tuple[str, ...], changes: dict[str, str]) -> None:
    seen = on_a_terminal(*args, **changes)
    assert seen
    assert "\x1b" not in seen


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("explain", "a.sqlite", "--format", "foo"), "gpudiag: invalid value for '--format': 'foo' is not one of "),
        (("explain", "a.sqlite", "--set", "H01.x=a"), "gpudiag: invalid value for '--set': 'a' is no number"),
        (("explain", "a.sqlite", "--iteration-time", "3ms", "--iteration-time", "4ms"), "a time is given twice"),
        (("explain",), "gpudiag: missing argument 'FILE...'; see `main explain --help`."),
        (("recrod",), "gpudiag: no such command 'recrod'"),
        (("--foo",), "gpudiag: no such option '--foo'; see `main --help`."),
    ],
)
def test_a_wrong_command_line_is_one_sentence(args: tuple[str, ...], said: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="/proc/kmsg cannot be read here")
def test_a_file_that_never_ends_is_not_waited_for() -> None:
    result = run("explain", "/proc/kmsg")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
