"""Rules, remedies and thresholds as authors write them, and what they read when something is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpudiag.cli import main
from gpudiag.errors import GpudiagError
from gpudiag.library import load as library
from gpudiag.library import view_docs, yaml_file
from gpudiag.library.catalogue import RenamedRuleWarning
from gpudiag.library.former_names import FormerNameWarning

RULE = """\
code: U01
kind: finding
id: idle-gpu
title: The GPU idles
requires: [gpu_ops]
params:
  min_share: {value: 0.2, unit: share, why: "less is noise, as measured"}
query: |
  select loop, intervals, share from idle where share >= $min_share
price: {kind: upper_bound, on: idle_intervals, high: [graph_region]}
message: "{{ total.share|pct }} idle."
why: Because.
not_a_problem_when: Never.
what: Looks for idle time.
remedies: [wait-less]
"""
REMEDY = """\
# Wait less

One paragraph.

## PyTorch: `done.query()`, not `wait()`

Do it.

```python
# not a heading
```

## CUDA C++

Do it too.
"""


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    """A packaged folder with one rule, one view, one remedy and one setting."""
    root = tmp_path / "rules"
    write(root / "host" / "idle-gpu.yaml", RULE)
    write(root / "host" / "idle-gpu.test.yaml", "nonsense that is not read here: [")
    write(root / "views" / "idle.sql", "-- idle\ncreate view idle as select 1 as loop;\n")
    write(root / "remedies" / "wait-less.md", REMEDY)
    write(root / "settings.yaml", "idle_noise_ns: {value: 1500, unit: ns, why: queued kernels}\n")
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_in_the_folder_is_found(packaged: Path) -> None:
    known = library.load(packaged=packaged)
    assert [(rule.code, rule.family) for rule in known.rules] == [("U01", "host")]
    assert known.setting_values == {"idle_noise_ns": 1500}
    assert known.views[0][0] == "idle.sql"
    assert known.view_names == {"idle"}
    remedy = known.remedies["wait-less"]
    assert (remedy.title, remedy.intro) == ("Wait less", "One paragraph.")
    assert set(remedy.sections) == {"pytorch", "cuda"}
    assert remedy.remedy("pytorch").hint == "`done.query()`, not `wait()`"
    assert remedy.remedy("cuda").hint == ""
    assert "# not a heading" in remedy.sections["pytorch"]


def test_the_packaged_library_is_sound() -> None:
    known, problems = library.scan()
    assert [str(problem) for problem in problems] == []
    assert len(known.rules) > 20
    assert [rule.code for rule in known.rules] == sorted(rule.code for rule in known.rules)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("unit: share, ", "", 7, "params.min_share.unit: Field required"),
        ("requires:", "require:", 5, "require: is no key here; did you mean requires"),
        ('"less is noise, as measured"', "less is noise, as measured", 7, "must be quoted"),
        ("id: idle-gpu", "id: idle", 3, "differs from the file's name 'idle-gpu'"),
        ("kind: finding", "kind: hygiene", 1, "a hygiene has no price"),
        ("price:", "explains: compiling\nprice:", 1, "a finding explains by its claim"),
        ("price:", "explains: copying\nprice:", 10, "'copying' is no leaf of the time tree"),
        ("price:", "evidence: {share: {label: idle}}\nprice:", 10, "evidence.share.unit: Field required"),
        ("on: idle_intervals, ", "", 10, "price wants `on`"),
        ("code: U01", "code: U01\ncode: U02", 2, "'code' is given twice"),
        ("kind: finding", "kind: finding\nfamily: sync", 3, "family: is the folder's name"),
        ("why: Because.", "why: !!python/name:os.system x", 12, "uses the YAML tag"),
    ],
)
def test_a_wrong_rule_is_reported_at_its_line(packaged: Path, old: str, new: str, line: int, words: str) -> None:
    path = write(packaged / "host" / "idle-gpu.yaml", RULE.replace(old, new))
    with pytest.raises(GpudiagError) as caught:
        library.load(packaged=packaged)
    assert f"{path}:{line}: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [" * 50, "nested more than"),
        ("- " * 200_000, "nested more than"),
        ("a: &a [1]\nb: [" + "*a, " * 30 + "]", "30 YAML aliases"),
        ("a: &a [*a]", "alias"),
        ("a: 1\n---\nb: 2", "another document"),
        ("a: 'x", "f.yaml:1"),
        ("why: this: that", "quote a text that holds a colon"),
    ],
)
def test_hostile_yaml_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(GpudiagError) as caught:
        yaml_file.parse(text, Path("f.yaml"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_scalars_mean_what_editors_take_them_for() -> None:
    text = "on: off\nbig: 1e6\nclock: 1:30\noctal: 017\nday: 2026-01-01\nyes: true\n"
    data = yaml_file.parse(text, Path("f.yaml")).data
    assert data == {"on": "off", "big": 1e6, "clock": "1:30", "octal": 17, "day": "2026-01-01", "yes": True}


def test_user_folders_add_but_never_replace(packaged: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    text = RULE.replace("U01", "U02").replace("idle-gpu", "my-smell")
    path = write(own / "kernel" / "memory" / "my-smell.yaml", text)
    write(own / "views" / "mine.sql", "create view mine as select 1 as a;\n")
    known = library.load([own], packaged=packaged)
    assert [rule.code for rule in known.user_rules] == ["U02"]
    assert known.by_code["U02"].family == "kernel/memory"
    assert [rule.code for rule in known.packaged_rules] == ["U01"]
    assert "mine" not in known.views[0][1]

    write(path, text.replace("U02", "U01"))
    with pytest.raises(GpudiagError, match=r"code U01 is taken by .*host/idle-gpu.yaml"):
        library.load([own], packaged=packaged)
    path.unlink()
    write(own / "views" / "mine.sql", "create view idle as select 1 as a;\n")
    with pytest.raises(GpudiagError, match="idle is already created in"):
        library.load([own], packaged=packaged)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("sync/a.yml", "code: U07", "rules end in .yaml"),
        ("settings.yaml", "a: 1", "thresholds are set with --set"),
        ("remedies/x.md", "# X\n\nIntro.\n\n## Cobol\n\nNo.\n", "'## Cobol' is not a filled section"),
        ("remedies/x.md", "# X\n\n## PyTorch\n\nYes.\n", "a remedy is `# Title`"),
        ("remedies/x.md", f"# X\n\nIntro.\n\n## PyTorch: {'very ' * 20}long\n\nYes.\n", "60 are the most"),
        ("views/x.sql", "select 1", "creates no view or macro"),
        ("sync/empty.yaml", "", "holds no rule"),
    ],
)
def test_files_that_would_be_ignored_are_named(
    packaged: Path, tmp_path: Path, name: str, text: str, words: str
) -> None:
    write(tmp_path / "own" / name, text)
    with pytest.raises(GpudiagError) as caught:
        library.load([tmp_path / "own"], packaged=packaged)
    assert words in str(caught.value)
    assert name in str(caught.value)


def test_naming_the_packaged_folder_adds_nothing() -> None:
    assert library.load([library.packaged_dir()]).user_rules == ()


def test_thresholds_can_be_overridden_by_name(packaged: Path) -> None:
    known = library.load(packaged=packaged)
    other = known.with_overrides({"U01.min_share": 0.3, "settings.idle_noise_ns": 2000})
    assert other.by_code["U01"].params["min_share"].value == 0.3
    assert other.setting_values == {"idle_noise_ns": 2000}
    assert known.by_code["U01"].params["min_share"].value == 0.2
    with pytest.raises(GpudiagError, match=r"no threshold 'U01.min_shar'; did you mean U01.min_share\?$"):
        known.with_overrides({"U01.min_shar": 0.3})


@pytest.mark.parametrize(
    ("former", "present", "value"),
    [
        ("W01.max_spills=0.2", "K03.min_share", 0.2),
        ("long-scoreboard.roof_pct=85", "settings.roof_best_pct", 85),
        ("K01.roof=0.85", "settings.roof_best_pct", 85),
    ],
)
def test_a_shared_threshold_answers_to_its_former_place(former: str, present: str, value: float) -> None:
    name, _, given = former.partition("=")
    with pytest.warns(FormerNameWarning, match=f"{name}: is now called {present}"):
        known = library.load().with_overrides({name: float(given)})
    owner, _, param = present.partition(".")
    holder = known.settings if owner == "settings" else known.by_code[owner].params
    assert holder[param].value == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [
        ("settings.loop_alike", 1.1, "0 to 1"),
        ("H01.min_share", -0.1, "0 to 1"),
        ("settings.loop_level_times", 0.9, "1 or more"),
    ],
)
def test_a_threshold_outside_of_its_units_range_is_refused(name: str, value: float, range_: str) -> None:
    with pytest.raises(GpudiagError, match=rf"{name}={value} makes no sense: give {range_}\."):
        library.load().with_overrides({name: value})


def test_a_rule_is_found_by_code_or_id(packaged: Path) -> None:
    known = library.load(packaged=packaged)
    assert known.find("u01") == known.find("idle-gpu")
    with pytest.raises(GpudiagError, match="did you mean idle-gpu"):
        known.find("idle-gpus")


def test_views_are_documented_from_their_comments() -> None:
    comment = "-- A gap\n-- in the work.\n-- materialised: it is slow\n--   gap: dense (ns)\n--     identifier\n"
    docs = view_docs.view_docs([("host/v.sql", f"{comment}create view v as select 1 as gap;\n")])
    page = view_docs.page(docs, {"v": {"gap": "INTEGER"}})
    assert "A gap in the work." in page
    assert "| `gap` | integer | dense (ns) identifier |" in page
    assert "Defined in `host/v.sql`." in page
    assert "Stored: it is slow." in page


@pytest.mark.parametrize("name", ["sync/a.yaml", "views/a.sql", "remedies/a.md"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large", "latin-1"])
def test_what_is_no_small_text_file_is_named_and_not_read(packaged: Path, tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / "own" / name
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xe4" if kind == "latin-1" else b"x" * (yaml_file.MAX_BYTES + 1))
    words = {"large": "is larger than 256 KiB", "latin-1": "is not UTF-8", "device": "leads out of the folder"}
    with pytest.raises(GpudiagError) as caught:
        library.load([tmp_path / "own"], packaged=packaged)
    assert words.get(kind, "is not a regular file") in str(caught.value)
    assert name in str(caught.value)


def test_a_rule_answers_to_its_former_name_with_a_warning(packaged: Path) -> None:
    write(packaged / "renamed.yaml", "rules: {gpu-idles: idle-gpu}\n")
    known = library.load(packaged=packaged)
    with pytest.warns(RenamedRuleWarning, match=r"^The rule gpu-idles is now called idle-gpu \(U01\)\.$"):
        assert known.find("gpu-idles").code == "U01"
    with pytest.warns(RenamedRuleWarning):
        changed = known.with_overrides({"gpu-idles.min_share": 0.5})
    assert changed.by_code["U01"].params["min_share"].value == 0.5
    assert known.with_overrides({"idle-gpu.min_share": 0.5}) == changed


def test_former_names_lead_to_rules_and_are_not_taken_again() -> None:
    known = library.load()
    ids = {rule.id for rule in known.rules}
    assert set(known.former.rules.values()) <= ids
    assert not known.former.rules.keys() & ids


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_command_line_warns_of_a_former_name_in_one_line() -> None:
    done = CliRunner().invoke(main, ["rules", "show", "late-rank"])
    assert done.exit_code == 0
    assert done.stdout.startswith("# N02:")
    assert done.stderr == "gpudiag: The rule late-rank is now called straggler-rank (N02).\n"


def test_every_packaged_rule_says_what_it_looks_for() -> None:
    assert [rule.code for rule in library.load().rules if not rule.what] == []
