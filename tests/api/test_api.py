"""`import gpudiag`: what it offers, that it is light, and that it leaves the program it is called from as it was."""

from __future__ import annotations

import copy
import doctest
import gc
import html
import inspect
import json
import lzma
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import gpudiag
import samples
from gpudiag import model
from gpudiag.api import frames
from gpudiag.options import Options
from gpudiag.report import formats, json_format, markdown
from paths import ROOT

CAPTURE = ROOT / "fixtures/captures/item_every_stage/slow.sqlite.xz"
PAGE = (ROOT / "docs/python.md").read_text("utf-8")


def sample() -> gpudiag.Report:
    return gpudiag.Report(samples.launch_bound())


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real capture, recorded on an H200, under the name that the documents use."""
    path = tmp_path_factory.mktemp("capture") / "report.sqlite"
    path.write_bytes(lzma.decompress(CAPTURE.read_bytes()))
    return path


# --- the names ------------------------------------------------------------------------------------------------------

SIGNATURES = {
    "explain": "(*paths, iteration_time=None, rules=(), overrides=None)",
    "read": "(path)",
    "diff": "(base, head)",
    "profile": "(path=None, *, steps=None, warmup=2, stacks=True, shapes=True, memory=False)",
    "Recording.report": "(self, *, iteration_time=None, rules=(), overrides=None)",
    "Recording.step": "(self)",
    "Report.plot": "(self)",
    "Report.render": "(self, format='markdown')",
    "Report.save": "(self, path, format=None)",
    "Report.to_dict": "(self)",
    "Report.to_json": "(self)",
    "Report.to_markdown": "(self)",
    "Diff.save": "(self, path)",
    "Diff.to_dict": "(self)",
    "Diff.to_json": "(self)",
    "Diff.to_markdown": "(self)",
}
PROPERTIES = {"data", "findings", "kernels", "loop_kernels", "loops", "minor", "places", "verdict"}
OF_DIFF = {"data", "findings", "kernels", "loops", "verdict"}


def test_names_and_signatures_are_stable() -> None:
    assert set(gpudiag.__all__) >= {
        "Diff",
        "GpudiagError",
        "Recording",
        "Report",
        "__version__",
        "diff",
        "explain",
        "profile",
        "read",
    }
    assert set(gpudiag.__all__) <= set(dir(gpudiag))
    for name, signature in SIGNATURES.items():
        function: object = gpudiag
        for part in name.split("."):
            function = getattr(function, part)
        assert callable(function)
        bare = inspect.signature(function)
        bare = bare.replace(
            parameters=[each.replace(annotation=inspect.Parameter.empty) for each in bare.parameters.values()],
            return_annotation=inspect.Signature.empty,
        )
        assert str(bare).startswith(signature.removesuffix(")")), name
    assert set(dir(gpudiag.Report)) >= PROPERTIES
    assert set(dir(gpudiag.Diff)) >= OF_DIFF


COLUMNS = {
    "Report.findings": "rank code id title severity confidence status kind basis loop loop_id before_ms after_ms "
    "low_ms high_ms speedup share cumulative_after_ms test places file line function nvtx kernel message fingerprint",
    "Report.places": "rank code file line function nvtx kernel share",
    "Report.loops": "id name source iterations processes iteration_ms iteration_ms_unprofiled share_of_span launches "
    "calls compute exposed_communication exposed_copy idle_launch idle_sync idle_input idle_allocation idle_other",
    "Report.kernels": "name launches duration_ms share_of_loop grid block limit floor_ms dram_pct sm_pct "
    "achieved_occupancy_pct occupancy_limit stall stall_share",
    "Report.loop_kernels": "loop loop_id kernel launches ms others",
    "Diff.loops": "name head_name state base_ms head_ms ratio ratio_low ratio_high share_of_span same_work",
    "Diff.findings": "state code title loop base_saves_ms head_saves_ms file line function nvtx kernel",
    "Diff.kernels": "loop kernel state base_launches head_launches base_ms head_ms",
}


FRAMES = {
    **{f"Report.{name}": columns for name, columns in frames.ALL.items()},
    **{f"Diff.{name}": columns for name, columns in frames.OF_DIFF.items()},
}


def test_no_frame_is_gone() -> None:
    assert list(COLUMNS) == list(FRAMES)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_stable_and_documented(name: str) -> None:
    assert [column.name for column in FRAMES[name]][: len(COLUMNS[name].split())] == COLUMNS[name].split()
    section = PAGE.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
    rows = [f"| `{c.name}` | {c.type.base_type().__name__} | {c.meaning} |" for c in FRAMES[name]]
    assert re.findall(r"^\| `.*$", section, re.MULTILINE) == rows


def test_every_public_name_is_documented() -> None:
    for name in (*SIGNATURES, *PROPERTIES):
        assert re.search(rf"[`.]{name.rpartition('.')[2]}\b", PAGE), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gpudiag' has no attribute 'nonsense'"):
        gpudiag.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    script = "import sys\nimport gpudiag\ndir(gpudiag)\nprint(*sorted(set(sys.argv[1:]) & sys.modules.keys()))"
    heavy = ("duckdb", "polars", "numba", "numpy", "jinja2", "rich", "pydantic", "yaml", "click", "gpudiag.api")
    done = subprocess.run([sys.executable, "-c", script, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_type_checkers_see_that_it_is_typed() -> None:
    assert Path(gpudiag.__file__).with_name("py.typed").is_file()


# --- the documents --------------------------------------------------------------------------------------------------


@pytest.mark.capture
def test_the_example_runs_and_prints_what_it_shows(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(capture.parent)
    names: dict[str, object] = {}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner, said = doctest.DocTestRunner(optionflags=flags, verbose=False), []
    examples = 0
    for kind, block in re.findall(r"```(python|pycon)\n(.*?)```", PAGE, re.DOTALL):
        if kind == "python":
            exec(block, names)
            continue
        text = block.replace("…", "...")
        part = doctest.DocTestParser().get_doctest(text, names, "docs/python.md", "docs/python.md", 0)
        examples += len(part.examples)
        runner.run(part, out=said.append, clear_globs=False)
        names.update(part.globs)
    assert examples > 10
    assert "".join(said) == ""


# --- a report -------------------------------------------------------------------------------------------------------


def test_findings_are_rows_in_the_order_of_the_report() -> None:
    report = sample()
    first, second = report.findings.iter_rows(named=True)
    assert (first["rank"], first["code"], first["loop"], first["places"]) == (1, "H01", "decode_token", 2)
    assert (first["file"], first["line"], first["before_ms"], first["kind"]) == ("decode.py", 31, 5.7, "upper_bound")
    assert (second["code"], second["cumulative_after_ms"]) == ("S01", 1.18)
    assert report.minor["code"].to_list() == ["M05"]
    assert report.places.select("rank", "line").rows() == [(1, 31), (1, 44), (2, 52)]


def test_severity_and_confidence_compare_in_rising_order() -> None:
    report = gpudiag.Report(
        samples.launch_bound().model_copy(
            update={
                "findings": (
                    samples.launch_bound_finding(severity="low", confidence="high"),
                    samples.launch_bound_finding(severity="high", confidence="low"),
                )
            }
        )
    )
    assert report.findings.filter(pl.col("severity") >= "medium")["confidence"].to_list() == ["low"]
    assert report.findings.sort("confidence")["severity"].to_list() == ["high", "low"]


def test_the_budget_of_a_loop_is_a_column_a_part() -> None:
    (loop,) = sample().loops.iter_rows(named=True)
    assert (loop["idle_launch"], loop["idle_input"]) == (0.72, 0.0)


def test_an_unknown_budget_is_null_not_zero() -> None:
    loops = (model.Loop(id=1, name="x", source="unknown", iterations=1, iteration_ms=1.0, share_of_span=1.0),)
    run = samples.launch_bound().run.model_copy(update={"loops": loops})
    assert gpudiag.Report(samples.launch_bound().model_copy(update={"run": run})).loops["compute"].to_list() == [None]


@pytest.mark.parametrize("name", samples.ALL)
def test_every_report_has_every_frame_with_the_same_types(name: str) -> None:
    report = gpudiag.Report(samples.ALL[name]())
    for frame, columns in {**frames.ALL, "minor": frames.FINDINGS}.items():
        assert getattr(report, frame).schema == pl.Schema({column.name: column.type for column in columns})
    assert len(report.findings) == len(report.data.findings)
    assert len(report.kernels) == len(report.data.run.kernels)


def test_a_frame_is_the_callers_own() -> None:
    report = sample()
    report.findings.drop_in_place("code")
    assert report.findings["code"].to_list() == ["H01", "S01"]


def test_what_a_saved_report_may_hold_fits_a_column() -> None:
    finding = samples.launch_bound_finding(rank=10**30, title="\ud800", where=())
    report = gpudiag.Report(samples.launch_bound().model_copy(update={"findings": (finding,)}))
    assert report.findings.select("rank", "title", "file").row(0) == (None, "?", None)


def test_printed_it_is_short_and_harmless() -> None:
    report = gpudiag.Report(samples.hostile())
    for text in (repr(report), str(report)):
        assert len(text.splitlines()) <= 7
        assert "\x1b" not in text and "\u202e" not in text
    assert repr(sample()) == "<gpudiag.Report of captures/decode.sqlite: problems, 2 findings>"
    assert str(sample()).splitlines()[1:] == [
        "1. H01 The GPU waits for small kernels to be launched (decode.py:31)",
        "2. S01 A scalar is read back from the GPU in every iteration (decode.py:52)",
    ]


def test_many_findings_are_counted() -> None:
    many = tuple(samples.launch_bound_finding(rank=rank) for rank in range(1, 9))
    text = str(gpudiag.Report(samples.launch_bound().model_copy(update={"findings": many})))
    assert text.splitlines()[-2:] == [
        "5. H01 The GPU waits for small kernels to be launched (decode.py:31)",
        "… and 3 more",
    ]


def test_reports_compare_copy_and_pickle() -> None:
    report = sample()
    assert report == sample() == copy.deepcopy(report) == pickle.loads(pickle.dumps(report))
    assert report != gpudiag.Report(samples.healthy())


def test_texts_are_those_of_the_command_line() -> None:
    report = sample()
    assert report.to_markdown() == report._repr_markdown_() == markdown.render(report.data)
    assert report.to_json() == report.render("json") == json_format.render(report.data)
    assert report.to_dict() == json.loads(report.to_json())


# --- saving and reading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", formats.ALL, ids=lambda form: form.name)
def test_it_is_saved_in_every_format(tmp_path: Path, form: formats.Format) -> None:
    report = sample()
    named = report.save(tmp_path / "report", form.name)
    assert named.read_text("utf-8") == report.render(form.name)
    by_suffix = report.save(str(tmp_path / f"other{form.suffix.upper()}"))
    chosen = formats.of_file(by_suffix)
    assert chosen is not None and chosen.suffix == form.suffix
    assert by_suffix.read_text("utf-8") == report.render(chosen.name)


def test_an_unknown_suffix_is_one_sentence_that_names_the_known(tmp_path: Path) -> None:
    with pytest.raises(
        gpudiag.GpudiagError, match=r"^\S*report\.txt has no suffix .*: end it in \.md \(markdown\)"
    ) as error:
        sample().save(tmp_path / "report.txt")
    assert "\n" not in str(error.value)
    assert all(form.suffix in str(error.value) for form in formats.ALL)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_one_sentence_that_names_the_known(tmp_path: Path) -> None:
    with pytest.raises(gpudiag.GpudiagError, match="There is no format 'pdf': there are markdown, json"):
        sample().save(tmp_path / "report.md", format="pdf")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(gpudiag.GpudiagError, match="cannot be written"):
        sample().save(tmp_path / "missing" / "report.md")


def test_a_saved_report_is_read_again(tmp_path: Path) -> None:
    path = sample().save(tmp_path / "report.json")
    assert gpudiag.read(path) == gpudiag.read(str(path)) == gpudiag.explain(path) == sample()


def test_what_is_no_report_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("[]")
    with pytest.raises(gpudiag.GpudiagError, match=r"report\.json is JSON, but neither a trace"):
        gpudiag.read(tmp_path / "report.json")


# --- notebooks ------------------------------------------------------------------------------------------------------


class Cell(HTMLParser):
    """What a browser makes of a notebook's cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= dict(attrs)


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    page = '<style>p{color:red}</style>\n<p title="it\'s">&amp;</p><script>1</script>'
    stub = type(sys)("gpudiag.report.pagestub")
    stub.render = lambda report, *_: page  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpudiag.report.pagestub", stub)
    monkeypatch.setitem(formats.BY_NAME, "html", formats.Format("html", "pagestub", ".html", "a page"))
    text = gpudiag.Report(samples.hostile())._repr_html_()
    assert text is not None
    cell = Cell(text)
    assert cell.tags == ["iframe"], "nothing of the page is in the cell itself"
    assert cell.attributes["srcdoc"] == page
    assert "allow-same-origin" not in (cell.attributes["sandbox"] or "")
    assert html.escape(samples.hostile().verdict.text) in text


def test_without_a_page_a_notebook_shows_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(formats.BY_NAME, "html", raising=False)
    assert sample()._repr_html_() is None
    assert sample()._repr_markdown_().startswith("# gpudiag")


@pytest.mark.capture
def test_the_page_of_a_capture_shows_its_timeline(capture: Path, tmp_path: Path) -> None:
    report = gpudiag.explain(capture)
    kept = pickle.loads(pickle.dumps(report))
    again = gpudiag.read(report.save(tmp_path / "report.json"))
    assert (report == kept, again.verdict == report.verdict) == (True, True)
    summary = "a saved report holds no timeline"
    assert [summary in each.render("html") for each in (report, kept, again)] == [False, False, True]


# --- diff -----------------------------------------------------------------------------------------------------------


def faster() -> gpudiag.Report:
    """The sample with its first finding fixed: one graph instead of 412 launches."""
    report = samples.launch_bound()
    loop = report.run.loops[0].model_copy(update={"iteration_ms": 1.2, "budget": {"compute": 0.97, "idle_sync": 0.03}})
    run = report.run.model_copy(update={"loops": (loop,)})
    return gpudiag.Report(report.model_copy(update={"run": run, "findings": report.findings[1:]}))


def test_a_diff_says_what_changed(tmp_path: Path) -> None:
    changed = gpudiag.diff(sample(), faster())
    (loop,) = changed.loops.iter_rows(named=True)
    assert loop["name"] == "decode_token"
    assert loop["head_ms"] < loop["base_ms"]
    assert changed.findings.filter(pl.col("code") == "H01")["state"].to_list() != ["unchanged"]
    assert changed.verdict == (changed.data.state, changed.data.text)
    assert changed == gpudiag.diff(sample().save(tmp_path / "base.json"), [faster()])


def test_repeats_of_a_side_are_counted() -> None:
    changed = gpudiag.diff([sample(), sample()], (faster(),))
    assert (changed.data.base.reports, changed.data.head.reports) == (2, 1)


def test_a_diff_prints_and_saves_as_the_command_line_does(tmp_path: Path) -> None:
    changed = gpudiag.diff(sample(), sample())
    assert repr(changed).startswith("<gpudiag.Diff of captures/decode.sqlite and captures/decode.sqlite: ")
    assert changed._repr_markdown_() == changed.to_markdown() == changed.save(tmp_path / "d.md").read_text("utf-8")
    assert json.loads(changed.save(tmp_path / "d.json").read_text()) == changed.to_dict()
    assert str(changed).startswith(changed.data.state.replace("_", " "))
    with pytest.raises(gpudiag.GpudiagError, match=r"d\.txt has no suffix that names a format"):
        changed.save(tmp_path / "d.txt")


def test_an_incomparable_pair_has_empty_frames_of_the_same_types() -> None:
    changed = gpudiag.diff(sample(), gpudiag.Report(samples.healthy()))
    assert changed.verdict.state == "incomparable"
    for name, columns in frames.OF_DIFF.items():
        assert getattr(changed, name).schema == pl.Schema({column.name: column.type for column in columns})


def test_a_side_without_a_report_is_one_sentence() -> None:
    with pytest.raises(gpudiag.GpudiagError, match="give each side a report or a file"):
        gpudiag.diff([], sample())


# --- explain --------------------------------------------------------------------------------------------------------


def state() -> dict[str, object]:
    """What a call could leave behind in the program."""
    return {
        "gc": gc.isenabled(),
        "switch": sys.getswitchinterval(),
        "signals": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "threads": {thread.name for thread in threading.enumerate()},
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook),
        "recursion": sys.getrecursionlimit(),
    }


@pytest.mark.capture
def test_it_leaves_the_program_as_it_was(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = state()
    first = gpudiag.explain(capture)
    assert state() == before
    assert gpudiag.explain(str(capture)) == first, "twice in a row"
    with pytest.raises(gpudiag.GpudiagError):
        gpudiag.explain(capture.with_name("none.sqlite"))
    assert state() == before
    assert capfd.readouterr() == ("", "")
    assert first.findings["code"][0] == "S01"


@pytest.mark.capture
def test_it_works_in_threads(capture: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(gpudiag.explain, [capture, capture])
    assert one == other == gpudiag.explain(capture)


@pytest.mark.capture
def test_arguments_do_what_those_of_the_command_line_do(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[Path], Options]] = []

    def pictured(paths: list[Path], options: Options) -> tuple[model.Report, None]:
        calls.append((paths, options))
        return samples.launch_bound(), None

    monkeypatch.setattr("gpudiag.pipeline.pictured", pictured)
    monkeypatch.setenv("HOME", "/home/me")
    gpudiag.explain("~/a.sqlite", Path("b.csv"), rules="my", overrides={"H01.x": 3}, iteration_time="3.57ms")
    gpudiag.explain("a", rules=[Path("my"), "other"], iteration_time={"step": timedelta(microseconds=3.5), "": "1 s"})
    both = {"step": 4e3, "": 1e9}  # a timedelta counts whole microseconds
    assert calls == [
        ([Path("/home/me/a.sqlite"), Path("b.csv")], Options([Path("my")], {"H01.x": 3.0}, {"": 3.57e6})),
        ([Path("a")], Options([Path("my"), Path("other")], {}, both)),
    ]


@pytest.mark.capture
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"iteration_time": 3.57}, r"3\.57 has no unit: write it as '3\.57ms', or give a timedelta"),
        ({"iteration_time": "3.57"}, "is not like 3.57ms"),
        ({"iteration_time": {"step": timedelta(days=2)}}, "longer than a day"),
        ({"iteration_time": timedelta(0)}, "is not like"),
        ({"overrides": {"H01.min_share": "0.3"}}, "'0.3' is no number: H01.min_share wants one"),
        ({"overrides": {"H01.min_share": float("nan")}}, "nan is no number"),
        ({"overrides": {"H01.min_share": 10**400}}, "10{58}… is no number"),
        ({"overrides": {"H01.min_share": 10**5000}}, "too many digits is no number"),
        ({"iteration_time": 10**5000}, "too many digits has no unit"),
        ({"overrides": {"H01.nonsense": 1}}, "H01.nonsense"),
        ({"rules": "nowhere"}, "nowhere: is not a folder"),
        ({"iteration_time": {"nonsense": "3ms"}}, "nonsense"),
    ],
)
def test_an_argument_without_sense_is_one_sentence(capture: Path, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(gpudiag.GpudiagError, match=said) as error:
        gpudiag.explain(capture, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_no_file_is_one_sentence() -> None:
    with pytest.raises(gpudiag.GpudiagError, match="give at least one file"):
        gpudiag.explain()
