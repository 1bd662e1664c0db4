"""Folders, files and YAML of an untrusted author: bombs, tags, pipes, devices, links, and too many of everything."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpudiag.authoring import lint
from gpudiag.errors import GpudiagError
from gpudiag.library import folder, yaml_file
from gpudiag.library import load as library
from gpudiag.library.remedy import parse_remedy
from untrusted import data, write

HERE = Path("x.yaml")


def doubled(times: int, ways: int, base: str) -> str:
    return f"a0: &a0 {base}\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * ways)}]\n" for n in range(1, times + 1)
    )


YAML = {
    "python object": ("a: !!python/object/apply:os.system ['touch /tmp/gpudiag-owned']", "uses the YAML tag"),
    "python name": ("a: !!python/name:os.system x", "uses the YAML tag"),
    "python tuple": ("a: !!python/tuple [1]", "uses the YAML tag"),
    "tag directive": ("%TAG ! tag:yaml.org,2002:python/\n---\na: !name:os.system x", "uses the YAML tag"),
    "own tag": ("a: !foo x", "uses the YAML tag"),
    **{f"tag {tag}": (f"a: !!{tag} {value}", "uses the YAML tag") for tag, value in (
        ("bool", "x"), ("int", "x"), ("float", "nan"), ("timestamp", "foo"), ("timestamp", "9999-99-99"), ("binary",
        "AAAA"),
        ("set", "{a, b}"), ("omap", "[a: 1]"), ("pairs", "[a: 1]"), ("merge", "x"), ("value", "x"), ("str", "x"),
        ("null", "x"))},
    "merge key": ("? !!merge x\n: {a: 1}", "uses the YAML tag"),
    "billion laughs": (doubled(9, 9, "[lol, lol, lol]"), "aliases"),
    "few aliases, many values": (doubled(10, 2, f"[{'1, ' * 15_000}1]"), "stand for more than"),
    "three ways": (doubled(6, 3, f"[{'1, ' * 15_000}1]"), "stand for more than"),
    "keys of keys": ("a: &a {b: &b {c: &c {d: 1, e: *b}}}", "undefined alias|contains itself"),
    "in itself": ("a: &a [*a]", "contains itself"),
    "in itself, as a mapping": ("a: &a {b: *a}", "contains itself"),
    "many values": (f"[{'1,' * 30_000}]", "more than 20,000 values"),
    "many keys": ("".join(f"k{n}: 1\n" for n in range(12_000)), "more than 20,000 values"),
    "deep lists": ("[" * 100_000, "nested more than 40"),
    "deep mappings": ("{a: " * 5_000, "nested more than 40"),
    "deep by indentation": ("\n".join(" " * n + "a:" for n in range(300)), "nested more than 40"),
    "deep sequences": ("- " * 5_000 + "a", "nested more than 40"),
    "key twice": ("a: 1\na: 2", "given twice"),
    "key twice, as number": ('{1: a, "1": b}', "given twice"),
    "list as key": ("? [a]\n: b", "unhashable"),
    "mapping as key": ("? {a: 1}\n: b", "unhashable"),
    "two documents": ("a: 1\n---\nb: 2", "another document"),
    "a million digits": ("a: " + "9" * 200_000, "is not YAML"),
    "NUL": ("a: \0", "control characters"),
    "escape": ("a: \x1b[31m", "control characters"),
    "surrogate": ("a: \ud800", "is not YAML"),
    "tab": ("a:\n\t- b", "token"),
    "no alias": ("a: *b", "undefined alias"),
    "unfinished": ("a: [", "expected"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), YAML.values(), ids=YAML)
def test_yaml_that_is_no_rule_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(GpudiagError, match=words) as caught:
        yaml_file.parse(text, HERE)
    assert str(caught.value).startswith("x.yaml:")


@pytest.mark.parametrize(
    ("text", "value"),
    [("017", 17), ("0o17", "0o17"), ("0x1F", "0x1F"), ("1:30", "1:30"), ("2001-01-01", "2001-01-01"), ("<<", "<<"),
     ("=", "="), ("yes", "yes"), ("on", "on"), (".inf", ".inf"), (".nan", ".nan"), ("1_000", "1_000"), ("~", None)],
)  # fmt: skip
def test_scalars_have_no_hidden_meaning(text: str, value: Any) -> None:
    assert yaml_file.parse(f"a: {text}", HERE).data == {"a": value}


def test_a_rule_read_from_yaml_as_a_windows_editor_writes_it(tmp_path: Path) -> None:
    path = write(tmp_path, "smell.yaml", b"\xef\xbb\xbfa: 1\r\nb: x\r\n")
    assert yaml_file.read(path).data == {"a": 1, "b": "x"}
    view = write(tmp_path, "views/a.sql", b"\xef\xbb\xbfcreate view own as\r\nselect 1 as a;\r\n")
    assert yaml_file.read_text(view).startswith("create view")


# --- what a rule's keys may hold ------------------------------------------------------------------------------------

PARAM = {"unit": "x", "why": "y"}
KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"params": {"a": {"value": float("nan"), **PARAM}}}, "value"),
    "NaN as text": ({"params": {"a": {"value": "nan", **PARAM}}}, "finite"),
    "infinite": ({"params": {"a": {"value": "inf", **PARAM}}}, "finite"),
    "overflows": ({"params": {"a": {"value": "1e999", **PARAM}}}, "finite"),
    "no float": ({"params": {"a": {"value": 10**400, **PARAM}}}, "number"),
    "param with a quote": ({"params": {"a'b": {"value": 1, **PARAM}}}, "match pattern"),
    "many params": ({"params": {f"a{n}": {"value": 1, **PARAM} for n in range(60)}}, "at most 50"),
    "long code": ({"code": "U" * 100 + "01"}, "at most 16"),
    "code with a line": ({"code": "U01\n::error::"}, "match pattern"),
    "remedy outside": ({"remedies": ["../../../etc/passwd"]}, "match pattern"),
    "remedy absolute": ({"remedies": ["/etc/passwd"]}, "match pattern"),
    "many remedies": ({"remedies": ["cuda-graphs"] * 30}, "at most 10"),
    "long why": ({"why": "x" * 5_000}, "at most 4000"),
    "long title": ({"title": "x" * 500}, "at most 400"),
    "long message": ({"message": "{{" * 3_000}, "at most 4000"),
    "long query": ({"query": "select 1 as a -- " + "x" * 20_000}, "at most 10000"),
    "long reference": ({"references": ["https://" + "x" * 5_000]}, "at most 400"),
    "ten thousand errors": ({"requires": [1] * 9_000}, "requires"),
    "ten thousand unknown keys": ({f"k{n:05}": 1 for n in range(9_000)}, "is no key here"),
    "no such ids": ({"kind": "finding", "price": {"kind": "expected", "on": "passwords", "low": ["pin"]}}, "price.on"),
    "another family": ({"family": "sync"}, "family"),
    "another id": ({"id": "other"}, "differs from the file"),
    "id with a path": ({"id": "../x"}, "match pattern"),
}


@pytest.mark.parametrize(("changes", "words"), KEYS.values(), ids=KEYS)
def test_keys_hold_what_they_are_for(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write(tmp_path, "smell.yaml", data(**changes))
    with pytest.raises(GpudiagError) as caught:
        library.parse_rule(yaml_file.read(path))
    assert words in str(caught.value)
    assert len(str(caught.value)) < 20_000


TAKEN: dict[str, tuple[str, str | dict[str, Any], str]] = {
    "a packaged code": ("smell.yaml", data(code="H01"), "code H01 is taken"),
    "a packaged id": ("launch-bound.yaml", data(id="launch-bound"), "id launch-bound is taken"),
    "a packaged suppressor": ("smell.yaml", data(code="X01", kind="suppressor"), "code X01 is taken"),
    "settings": ("settings.yaml", "idle_noise_ns: {value: 0, unit: ns, why: x}", "is not read"),
    "capabilities": ("capabilities.yaml", "gpu_ops: {meaning: x, missing: x, flag: x}", "is not read"),
    "a packaged view": ("views/a.sql", "create view loop_gpu_op as select 1 as a;", "loop_gpu_op is already created"),
    "a packaged macro": ("views/a.sql", "create macro op_class(x) as 1;", "op_class is already created"),
    "a packaged remedy": ("remedies/cuda-graphs.md", "# T\n\nx\n\n## PyTorch\n\nx\n", "cuda-graphs exists already"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "words"), TAKEN.values(), ids=TAKEN)
def test_nothing_of_the_tool_s_can_be_replaced(tmp_path: Path, name: str, text: Any, words: str) -> None:
    write(tmp_path, name, text)
    with pytest.raises(GpudiagError) as caught:
        library.load([tmp_path])
    assert words in str(caught.value)


def test_an_untrusted_suppressor_needs_a_rule_that_names_it() -> None:
    known = library.load()
    codes = {rule.code for rule in known.rules}
    assert {code for rule in known.rules for code in rule.suppressed_by} <= codes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# T\n\nx\n\n## PyTorch\n\n" + "x" * 5_000, "has a part of 5,000 characters"),
        ("# T\n\nx\n\n## ../../etc/passwd\n\nx", "is not a filled section"),
        ("# T\n\nx\n\n## " + "x" * 90_000, "is not a filled section"),
        ("", "a remedy is"),
        ("```\n# T\n", "a remedy is"),
    ],
)
def test_remedies_are_short_texts_for_known_frameworks(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(GpudiagError) as caught:
        parse_remedy(write(tmp_path, "a.md", text))
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1_000


# --- the folder -----------------------------------------------------------------------------------------------------


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "link to a file": (lambda path: path.symlink_to("/etc/passwd"), "leads out of the folder"),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), "leads out of the folder"),
    "link that climbs": (lambda path: path.symlink_to("../../../../../etc/passwd"), "leads out of the folder"),
    "link to itself": (lambda path: path.symlink_to(path), "cannot be read"),
    "link to nothing": (lambda path: path.symlink_to("gone"), "cannot be read"),
    "pipe": (os.mkfifo, "is not a regular file"),
    "folder": (lambda path: path.mkdir(), "is not a regular file"),
    "ten gigabytes of nothing": (sparse, "is larger than 256 KiB"),
    "UTF-16": (lambda path: path.write_text("a: 1", "utf-16"), "is not UTF-8"),
    "Latin-1": (lambda path: path.write_bytes(b"a: \xe4"), "is not UTF-8"),
    "zeros": (lambda path: path.write_bytes(b"\0" * 1000), ":"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "words"), FILES.values(), ids=FILES)
@pytest.mark.parametrize("name", ["a.yaml", "views/a.sql", "remedies/a.md"])
def test_only_small_text_files_of_the_folder_are_read(
    tmp_path: Path, name: str, make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "rules" / name
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(GpudiagError) as caught:
        library.load([tmp_path / "rules"])
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "root:" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/", "/etc", "..", "."])
def test_a_link_to_a_folder_is_reported_and_not_entered(tmp_path: Path, target: str) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "more").symlink_to(target)
    with pytest.raises(GpudiagError, match="is a link to a folder"):
        library.load([tmp_path / "rules"])


def test_a_link_within_the_folder_and_a_linked_folder_are_fine(tmp_path: Path) -> None:
    write(tmp_path, "rules/..data/smell.yaml", data())
    (tmp_path / "rules/smell.yaml").symlink_to("..data/smell.yaml")
    (tmp_path / "linked").symlink_to("rules")
    assert "U01" in library.load([tmp_path / "linked"]).user_codes


@pytest.mark.slow
def test_a_test_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "rules/smell.yaml", data())
    (tmp_path / "secret").write_text("hunter2: {expect: []}")
    (tmp_path / "rules/smell.test.yaml").symlink_to(tmp_path / "secret")
    found = [str(problem) for problem in lint.check([tmp_path / "rules"])]
    assert any("leads out of the folder" in text for text in found)
    assert "hunter2" not in "".join(found)


def test_a_file_removed_while_it_is_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "smell.yaml", data())
    listed = folder.files

    def files(root: Path) -> list[Path]:
        found = listed(root)
        if root == tmp_path:
            (tmp_path / "smell.yaml").unlink()
        return found

    monkeypatch.setattr(folder, "files", files)
    with pytest.raises(GpudiagError, match="cannot be read"):
        library.load([tmp_path])


def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Looked at and then opened, it would hang: whoever opens a pipe waits for its writer."""
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(GpudiagError, match="not a regular file"):
        yaml_file.read_text(tmp_path / "a.yaml")


@pytest.mark.slow
def test_a_folder_of_everything_is_left_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_FILES", 1_000)
    for n in range(1_100):
        write(tmp_path, f"{n}.txt", "")
    with pytest.raises(GpudiagError, match="more than 1,000 files"):
        library.load([tmp_path])


def test_megabytes_of_rules_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_BYTES", 1 << 20)
    for n in range(9):
        write(tmp_path, f"a{n}.yaml", "x" * 200_000)
    with pytest.raises(GpudiagError, match="MiB of rules"):
        library.load([tmp_path])


def test_hidden_folders_are_not_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_FILES", 1_000)
    for n in range(1_100):
        write(tmp_path, f".git/objects/{n}.yaml", "no rule")
    write(tmp_path, "smell.yaml", data())
    assert library.load([tmp_path]).user_codes == {"U01"}


def test_one_run_has_a_bounded_number_of_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_RULES", 3)
    for n in range(5):
        write(tmp_path, f"smell{n}.yaml", data(code=f"U0{n}", id=f"smell{n}"))
    with pytest.raises(GpudiagError, match="one rule more than the 3"):
        library.load([tmp_path])


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    ["\n" * 250_000 + " ", ("create" + " " * 100 + "\n") * 2_000, "-- x\n" * 50_000, "create view " * 20_000,
     "/*\n" * 80_000, "'" * 250_000, "create macro x(" + "a," * 100_000],
    ids=["lines", "creates", "comments", "views", "block comments", "quotes", "parameters"],
)  # fmt: skip
def test_a_view_file_is_searched_in_the_time_its_length_takes(tmp_path: Path, sql: str) -> None:
    """Empty lines alone had taken a minute: the guard of this folder's tests fails such a search."""
    write(tmp_path, "views/a.sql", sql)
    found, problems = library.scan([tmp_path])
    assert len(found.user_views) + len(problems) == 1
