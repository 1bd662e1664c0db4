"""Completion of the command line: the scripts, and the answers they get by the protocol of click's scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpudiag.cli import main


def script(shell: str) -> str:
    result = CliRunner().invoke(main, ["completion", shell])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def offered(line: str, folder: Path) -> list[str]:
    """What a shell is offered when Tab is pressed at the end of the line: `type,value` each."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "gpudiag"],
        cwd=folder,
        env={
            **os.environ,
            "_GPUDIAG_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_where_it_goes(shell: str) -> None:
    head = script(shell).splitlines()[:2]
    assert any(line.startswith("# Add to ~/") and f"gpudiag completion {shell}" in line for line in head)


def test_zsh_finds_its_mark_first() -> None:
    assert script("zsh").startswith("#compdef gpudiag\n")


def test_another_shell_is_refused() -> None:
    result = CliRunner().invoke(main, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr


def test_the_script_needs_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "_gpudiag_completion_setup" in script("bash")


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes_a_command(tmp_path: Path) -> None:
    program = tmp_path / "gpudiag"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpudiag "$@"\n')
    program.chmod(0o755)
    pressed = "COMP_WORDS=(gpudiag expl); COMP_CWORD=1; _gpudiag_completion gpudiag; echo ${COMPREPLY[*]}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script('bash')}\n{pressed}"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("explain\n", "")


def test_commands_and_options_are_offered(tmp_path: Path) -> None:
    assert offered("gpudiag expl", tmp_path) == ["plain,explain"]
    assert offered("gpudiag explain --iter", tmp_path) == ["plain,--iteration-time"]
    assert "plain,markdown" in offered("gpudiag explain --format ", tmp_path)


def test_only_captures_are_offered(tmp_path: Path) -> None:
    for name in ("report.nsys-rep", "report.sqlite.xz", "report.py", "report.md", "other.csv", ".report.csv"):
        (tmp_path / name).touch()
    assert offered("gpudiag explain report", tmp_path) == ["plain,report.nsys-rep", "plain,report.sqlite.xz"]
    assert offered("gpudiag explain ", tmp_path) == [
        "plain,other.csv",
        "plain,report.nsys-rep",
        "plain,report.sqlite.xz",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("line", ["gpudiag explain r", "gpudiag explain nowhere/", "gpudiag explain "])
def test_folders_odd_names_and_no_captures_are_left_to_the_shell(tmp_path: Path, line: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "report.sqlite").touch()
    assert [offer.partition(",")[0] for offer in offered(line, tmp_path)] == ["file"]
    (tmp_path / "runs").rmdir()
    (tmp_path / "report.sqlite").rename(tmp_path / "report $(x).sqlite")
    assert [offer.partition(",")[0] for offer in offered(line, tmp_path)] == ["file"]


@pytest.mark.slow
def test_codes_and_names_of_rules_are_offered(tmp_path: Path) -> None:
    assert "plain,H01" in offered("gpudiag rules show H", tmp_path)
    assert offered("gpudiag rules show launch-bo", tmp_path) == ["plain,launch-bound"]
    assert offered("gpudiag rules show nothing", tmp_path) == []


def test_a_broken_rule_spoils_no_completion(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("code: [")
    assert offered(f"gpudiag rules show --rules {tmp_path} H0", tmp_path) == []
