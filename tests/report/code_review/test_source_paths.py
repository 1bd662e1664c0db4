"""A file recorded elsewhere is found in the checkout by its name, or said not to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.report.code_review import source_paths
from gpudiag.report.code_review.source_paths import SourceFile

KNOWN = ("train.py", "pkg/model.py", "pkg/__init__.py", "pkg/sub/__init__.py", "tools/train.py", "src/flat.py")


@pytest.mark.parametrize(
    ("recorded", "path"),
    [
        ("/home/u/proj/train.py", "train.py"),
        ("train.py", "train.py"),
        ("./train.py", "train.py"),
        ("/home/u/proj/tools/train.py", "tools/train.py"),
        ("/home/u/proj/pkg/model.py", "pkg/model.py"),
        ("/home/u/proj/pkg/sub/__init__.py", "pkg/sub/__init__.py"),
        ("/home/u/proj/scripts/../pkg/./model.py", "pkg/model.py"),
        ("../../../../pkg/model.py", "pkg/model.py"),
        (r"C:\Users\u\proj\pkg\model.py", "pkg/model.py"),
        (r"\\server\share\pkg\model.py", "pkg/model.py"),
        (r"pkg\model.py", "pkg/model.py"),
        ("file:///home/u/my%20proj/pkg/model.py", "pkg/model.py"),
        ("/app/flat.py", "src/flat.py"),
    ],
)
def test_the_longest_common_end_is_meant(recorded: str, path: str) -> None:
    assert source_paths.relative([recorded], KNOWN) == {recorded: SourceFile(path, True)}


@pytest.mark.parametrize(
    ("recorded", "path"),
    [
        ("/usr/lib/python3/dist-packages/torch/nn/train.py", "torch/nn/train.py"),
        ("/home/u/proj/.venv/lib/python3.11/site-packages/torch/nn/train.py", "torch/nn/train.py"),
        ("/usr/lib/python3.11/train.py", "train.py"),
        ("/etc/passwd", "passwd"),
        ("../../etc/passwd", "passwd"),
        (r"D:\other\file.py", "file.py"),
    ],
)
def test_what_the_checkout_does_not_have_gets_no_place_in_it(recorded: str, path: str) -> None:
    assert source_paths.relative([recorded], KNOWN) == {recorded: SourceFile(path, False)}


def test_two_equally_likely_files_are_not_guessed_between() -> None:
    found = source_paths.relative(["/app/util.py"], ["a/util.py", "b/util.py"])
    assert found == {"/app/util.py": SourceFile("util.py", False)}
    # But one at the root is what a flat program was.
    found = source_paths.relative(["/app/util.py"], ["a/util.py", "util.py"])
    assert found == {"/app/util.py": SourceFile("util.py", True)}


@pytest.mark.parametrize("recorded", ["", "<string>", "<frozen importlib._bootstrap>", "[unknown]", "x" * 10_000, "/"])
def test_what_is_no_file_is_left_out(recorded: str) -> None:
    assert source_paths.relative([recorded], KNOWN) == {}


def test_files_of_another_program_keep_their_relative_path() -> None:
    found = source_paths.relative(["/data/run/a/x.py", "/data/run/b/y.py", "/data/run/z.py"], ())
    assert [source.path for source in found.values()] == ["a/x.py", "b/y.py", "z.py"]


def test_what_was_recorded_below_the_checkout_needs_no_guess() -> None:
    found = source_paths.relative(["/ci/work/pkg/train.py"], KNOWN, root="/ci/work")
    assert found == {"/ci/work/pkg/train.py": SourceFile("pkg/train.py", False)}
    assert source_paths.relative(["/ci/work/train.py"], KNOWN, root="/ci/work")["/ci/work/train.py"].present


def test_no_path_leads_out_of_the_checkout() -> None:
    recorded = [
        "../x.py",
        "/a/../../x.py",
        "a/../../../x.py",
        r"..\..\x.py",
        "C:/../x.py",
        "file:///%2e%2e/x.py",
        "//x.py",
    ]
    for source in source_paths.relative(recorded, KNOWN).values():
        assert not source.path.startswith("/")
        assert ".." not in source.path.split("/")


def test_the_checkout_is_searched_once_without_following_links(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    outside = tmp_path / "outside"
    for folder in (repo / ".git", repo / "pkg/deep", repo / ".hidden", repo / "env", repo / "node_modules", outside):
        folder.mkdir(parents=True)
    (repo / "env/pyvenv.cfg").touch()
    for folder in ("pkg", "pkg/deep", ".hidden", "env", "node_modules"):
        (repo / folder / "train.py").touch()
    (outside / "other.py").touch()
    (repo / "linked").symlink_to(outside)
    (repo / "loop").symlink_to(repo)
    (repo / "seen.py").symlink_to(outside / "other.py")
    (repo / "folder.py").mkdir()
    names = {"train.py", "other.py", "seen.py", "folder.py"}
    assert source_paths.listing(repo, names) == ["seen.py", "pkg/train.py", "pkg/deep/train.py"]
    assert source_paths.in_checkout(["/x/pkg/train.py"], repo / "pkg/deep") == {
        "/x/pkg/train.py": SourceFile("pkg/train.py", True)
    }


def test_a_huge_folder_is_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(30):
        (tmp_path / f"d{i:02}").mkdir()
        (tmp_path / f"d{i:02}" / "train.py").touch()
    monkeypatch.setattr(source_paths, "MOST_ENTRIES", 40)
    assert 0 < len(source_paths.listing(tmp_path, {"train.py"})) < 30
