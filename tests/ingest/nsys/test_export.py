"""Reports through the `nsys` of several versions: a script stands in for each, and knows that version's options only.

What it lists and how it refuses was recorded from the real tools (tests/data/nsys); the report itself is made up.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from pathlib import Path

import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.nsys import export as exporting
from gpudiag.ingest.nsys.export import export
from gpudiag.store.database import create
from paths import DATA

NSYS = DATA / "nsys"
VERSIONS = sorted(file.name.removesuffix(".help.txt") for file in NSYS.glob("*.help.txt"))
REPORT = b"NVIDIA Tegra Profiler Report 1.\n" + bytes(100)

# As these versions word an unknown option; then writes what $EXPORTED names to the path that it is given.
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo "NVIDIA Nsight Systems version $VERSION.17-e0b1"; exit 0; }
shift
[ "$1" = --help ] && { cat "$HELP"; exit 0; }
for word in "$@"; do
  option="${word%%=*}"
  case "$word" in
    --type=*) grep -q "${word#--type=}" "$HELP" || { echo "Unsupported export type option: '${word#--type=}'." >&2
      printf "\\nusage: nsys export [<args>] [nsys-rep-file]\\nTry 'nsys export --help' for more information.\\n" >&2
      exit 1; }; kind="${word#--type=}";;
    --output=*) target="${word#--output=}";;
  esac
  case "$option" in --*) grep -qe "$option" "$HELP" || { echo "unrecognised option '$word'" >&2
    printf "\\nusage: nsys export [<args>] [nsys-rep-file]\\nTry 'nsys export --help' for more information.\\n" >&2
    exit 1; };; esac
done
"""
WRITES = 'echo "$@" > "$LOG"\n[ "$kind" = sqlite ] && cp "$EXPORTED" "$target"\n'
FOLDER = '[ "$kind" = parquetdir ] && { mkdir "$target"; : > "$target/META_DATA_CAPTURE.parquet"; }\nexit 0\n'


def tool(folder: Path, version: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an `nsys` of that version on the PATH."""
    values = {"VERSION": version, "HELP": NSYS / f"{version}.help.txt", "LOG": folder / "log.txt",
              "EXPORTED": folder / "exported.sqlite"}  # fmt: skip
    script = STAND_IN.replace(
        "#!/bin/sh\n", "#!/bin/sh\n" + "".join(f"{k}={shlex.quote(str(v))}\n" for k, v in values.items())
    )
    place = folder / "bin"
    place.mkdir()
    (place / "nsys").write_text(script + body)
    (place / "nsys").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")


def sampled(path: Path, included: str | None) -> None:
    """An export of a capture that sampled Python, without the stacks, as versions without the option write it."""
    con = sqlite3.connect(path)
    con.execute("create table StringIds (id, value)")
    con.execute("create table META_DATA_CAPTURE (name, value)")
    options = [("PYTHON_BACKTRACE_SAMPLING_OPTIONS:COLLECT_SAMPLES", "true"), ("CAPTURE_EVENT_TYPE", "NvtxEvents")]
    con.executemany("insert into META_DATA_CAPTURE values (?, ?)", options)
    con.execute("create table META_DATA_EXPORT (name, value)")
    if included:
        con.execute("insert into META_DATA_EXPORT values ('EXPORT_PARAM_INCLUDE_JSON', ?)", [included])
    con.commit()
    con.close()


@pytest.fixture
def report(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    file = tmp_path / "run.nsys-rep"
    file.write_bytes(REPORT)
    return file


def refusal(report: Path, timeout_s: float = 60.0) -> str:
    with pytest.raises(GpudiagError) as error:
        export(report, report.parent / "work", timeout_s=timeout_s)
    sentence = str(error.value)
    assert sentence.startswith(f"{report}: ") and sentence.endswith(".") and "\n" not in sentence
    return sentence


def left_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith("nsys"))


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_gets_only_options_it_lists(
    version: str, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(tmp_path / "exported.sqlite", None)
    tool(tmp_path, version, WRITES + FOLDER, monkeypatch)
    written = export(report, tmp_path / "work")
    asked = (tmp_path / "log.txt").read_text()
    offered = (NSYS / f"{version}.help.txt").read_text()
    assert ("--include-json=true" in asked) == ("--include-json" in offered)
    # The first versions with Parquet leave the options of the capture out of it.
    assert written.is_dir() == (version == "2025.3.1")


def test_without_a_json_option_stacks_are_not_recorded(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(tmp_path / "exported.sqlite", None)
    tool(tmp_path, "2023.4.4", WRITES, monkeypatch)
    con = create()
    ingest(report, con, tmp_path / "work")
    ((state, how),) = con.execute("select state, how from capability where name = 'python_samples'").fetchall()
    assert state == "not_recorded"
    assert "cannot write Python stacks; export it with a newer one" in how


def test_stacks_left_out_by_choice_name_the_option(tmp_path: Path) -> None:
    sampled(tmp_path / "a.sqlite", "false")
    con = create()
    ingest(tmp_path / "a.sqlite", con, tmp_path)
    ((how,),) = con.execute("select how from capability where name = 'python_samples'").fetchall()
    assert how.endswith("add --include-json=true")


PARSE = """[libprotobuf ERROR /build/message_lite.cc:122] Can't parse message of type "Data.SessionState" because\
 it is missing required fields: DeviceState.Props.Items[20].Type
Exportation error: /build/agent/ProtobufUtils.cpp(70): Throw in function void ReadMessage(PbMessageLite&)
Dynamic exception type: boost::wrapexcept<QuadDCommon::ProtobufParseException>
std::exception::what: ProtobufParseException
"""
NEWER = """Exportation error: Report was created in Nsight Systems version (2024.5.1.113-245134619542v0), newer than \
your current version (2023.4.4.54-234433681190v0).
Please update your Nsight Systems to the latest version to view this report.
"""
BAR = "Processing 466 events: [1%          ]\rProcessing 466 events: [=======100%]\n"


@pytest.mark.parametrize(
    ("version", "said", "words"),
    [
        ("2020.4.3", "Failed to export report.\nVersion number is invalid.", "Version number is invalid"),
        ("2021.3.3", "Exportation error: Version number is invalid.", "Version number is invalid"),
        ("2021.3.3", PARSE, "cannot parse the report"),
        ("2022.4.2", "Exportation error: Version number is invalid: 2024@5@1@113-24v0", "invalid: 2024@5@1@113-24v0"),
        ("2023.4.4", BAR + NEWER, "newer than your current version (2023.4.4.54-234433681190v0)"),
        ("2023.4.4", "Exportation error: Section Table Reference magic number mismatch.", "magic number mismatch"),
        ("2025.3.1", "Exportation error: Cannot read from stream.\n", "Cannot read from stream"),
        ("2025.3.1", "nsys: error while loading shared libraries: libdw.so.1: cannot open", "libdw.so.1"),
    ],
)
def test_the_reason_is_nsyss_own_sentence(
    version: str, said: str, words: str, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The old ones leave a schema without rows behind.
    body = 'echo "x" > "$target" 2>/dev/null\nprintf %s ' + shlex.quote(said) + " >&2\nexit 1\n"
    tool(tmp_path, version, body, monkeypatch)
    sentence = refusal(report)
    assert words in sentence and f"of version {version}" in sentence
    assert "Dynamic exception" not in sentence and "Please update" not in sentence and "[=" not in sentence
    assert left_in(tmp_path / "work") == []


def test_a_newer_report_names_the_version_that_made_it(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2024@5@1@113-245134619542v0." + bytes(100))
    tool(tmp_path, "2021.3.3", 'echo "Exportation error: Version number is invalid." >&2; exit 1\n', monkeypatch)
    assert "made by version 2024.5.1: export it with that one or a newer one" in refusal(report)


def test_an_old_report_that_is_refused_may_be_damaged(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2023@4@4@54-1." + bytes(100))
    tool(tmp_path, "2025.3.1", 'echo "Exportation error: Cannot read from stream." >&2; exit 1\n', monkeypatch)
    assert "may be damaged: copy it again" in refusal(report)


def test_half_an_export_is_not_read(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled(tmp_path / "exported.sqlite", None)
    tool(tmp_path, "2022.4.2", WRITES + 'echo "Exportation error: No space left." >&2; exit 1\n', monkeypatch)
    assert "says: No space left" in refusal(report)
    assert left_in(tmp_path / "work") == []


@pytest.mark.parametrize("body", ["exit 0\n", ': > "$target"; exit 0\n', 'mkdir "$target"; exit 0\n'])
def test_an_export_of_nothing_is_reported(
    body: str, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "2022.4.2", body, monkeypatch)
    assert "of version 2022.4.2 wrote nothing" in refusal(report)


def test_parquet_that_fails_is_tried_again_as_sqlite(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(tmp_path / "exported.sqlite", "true")
    body = '[ "$kind" = parquetdir ] && { mkdir "$target"; : > "$target/StringIds.parquet"; exit 0; }\n' + WRITES
    tool(tmp_path, "2025.3.1", body, monkeypatch)
    assert export(report, tmp_path / "work") == tmp_path / "work" / "export.sqlite"
    assert left_in(tmp_path / "work") == ["export.sqlite"]


def test_a_crash_is_named_by_its_signal(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "2022.4.2", "kill -SEGV $$\n", monkeypatch)
    assert "was ended by signal 11" in refusal(report)


@pytest.mark.slow
def test_a_hung_nsys_is_given_up_with_all_it_started(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "2022.4.2", f"sleep 300 & echo $! > {tmp_path}/child; wait\n", monkeypatch)
    assert "did not finish within 5 s" in refusal(report, timeout_s=5.0)
    child = int((tmp_path / "child").read_text())
    for _ in range(600):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        # A container without a process that collects the dead keeps it as a zombie.
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("what nsys started runs on")


def test_without_nsys_the_sentence_says_what_to_run(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(report.parent / "work"))
    assert "`nsys export --type=sqlite --output=run.sqlite run.nsys-rep`" in refusal(report)


def test_an_nsys_without_help_still_exports(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    body = 'for a in "$@"; do case "$a" in --output=*) echo x > "${a#--output=}";; --lazy*|--incl*) exit 1;; esac; done'
    (place / "nsys").write_text('#!/bin/sh\n[ "$2" = --help ] && exit 1\n' + body)
    (place / "nsys").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    assert export(report, tmp_path / "work").name == "export.sqlite"


def test_usage_text_is_never_the_reason() -> None:
    usage = "\nusage: nsys export [<args>] [nsys-rep-file]\nTry 'nsys export --help' for more information.\n"
    assert exporting.reason("unrecognised option '--x=1'\n" + usage) == "unrecognised option '--x=1'"
