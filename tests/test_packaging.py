"""The wheel carries the rules, runs on its own, and the locks hold what the project asks for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import gpudiag
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gpudiag's wheel, built from the checkout without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("gpudiag-*.whl"))


@pytest.mark.slow
def test_the_wheel_carries_every_rule_view_and_remedy(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = {f"gpudiag/{path.relative_to(ROOT)}" for path in (ROOT / "rules").rglob("*") if path.is_file()}
    assert ours
    assert ours | {"gpudiag/py.typed", f"gpudiag-{gpudiag.__version__}.data/data/share/man/man1/gpudiag.1"} <= inside


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    hatch = [sys.executable, "-m", "hatchling", "build", "--directory"]
    subprocess.run([*hatch, str(tmp_path), "--target", "sdist"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as packed:
        packed.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.is_dir())
    subprocess.run([*hatch, str(tmp_path), "--target", "wheel"], cwd=unpacked, check=True, capture_output=True)
    (again,) = tmp_path.glob("*.whl")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheel).namelist())


def test_the_release_workflow_pins_all_and_keeps_no_secret() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []
    assert "secrets." not in text
    assert "password" not in jobs["publish"]["steps"][-1].get("with", {})
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "publish": {"id-token": "write"},
    }


def test_the_changelog_begins_with_this_version() -> None:
    newest = re.search(r"^## (\S+?)(, not released yet)?$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest
    assert newest[1] == gpudiag.__version__


@pytest.mark.slow
def test_an_installed_wheel_lists_its_own_rules(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    site = next((environment / "lib").glob("python*/site-packages"))
    # The dependencies come from this environment; its editable gpudiag does not: nested .pth files are not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-warn-script-location", str(wheel)], check=True, cwd=tmp_path)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    script = environment / "bin" / "gpudiag"
    listed = subprocess.run(
        [script, "rules", "list"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert re.search(r"\bH01\b.*launch", listed.stdout)
    where = [python, "-c", "import gpudiag.library.load as l; print(l.packaged_dir())"]
    used = subprocess.run(where, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert Path(used.stdout.strip()).is_relative_to(environment)


def locked(name: str) -> dict[str, str]:
    """Package → version in a lock file and in those that it holds."""
    text = (ROOT / name).read_text("utf-8")
    held = {
        package: version
        for other in re.findall(r"^-r (\S+)", text, re.MULTILINE)
        for package, version in locked(other).items()
    }
    return held | dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", text, re.MULTILINE))


def wanted(*groups: str) -> list[Requirement]:
    """The project's requirements with those of some dependency groups."""
    texts: list[str] = list(PROJECT["project"]["dependencies"])
    for group in groups:
        texts += [text for text in PROJECT["dependency-groups"][group] if isinstance(text, str)]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize(
    ("lock", "groups"), [("requirements.lock", ("build",)), ("requirements-dev.lock", ("build", "dev"))]
)
def test_locks_hold_versions_that_the_project_accepts(lock: str, groups: tuple[str, ...]) -> None:
    versions = locked(lock)
    unmet = [
        str(requirement)
        for requirement in wanted(*groups)
        if versions.get(requirement.name.lower().replace("_", "-"), "0") not in requirement.specifier
    ]
    assert unmet == [], "run scripts/lock.sh"


def test_no_package_is_locked_twice() -> None:
    texts = [(ROOT / name).read_text("utf-8") for name in ("requirements.lock", "requirements-dev.lock")]
    run, dev = (set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)) for text in texts)
    assert run and dev and not run & dev
    assert run | dev == set(locked("requirements-dev.lock"))


def test_the_packages_in_use_are_the_locked_ones() -> None:
    from importlib.metadata import version

    if not (Path(sys.prefix) / ".installed-dev").exists():
        pytest.skip("these tests run in an environment that scripts/setup.sh did not make")
    versions = locked("requirements-dev.lock")
    assert {name: version(name) for name in ("duckdb", "pydantic", "jinja2")} == {
        name: versions[name] for name in ("duckdb", "pydantic", "jinja2")
    }


def test_setting_up_with_an_old_python_says_so_in_one_sentence(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("cat", "cksum", "dirname", "tr"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", "utf-8")  # how any version below 3.11 answers the question
    old.chmod(0o755)
    checkout = tmp_path / "checkout"
    for name in ("scripts/setup.sh", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "src/gpudiag").mkdir(parents=True)
    (checkout / "src/gpudiag/__init__.py").touch()
    command = [str(shutil.which("sh")), str(checkout / "scripts/setup.sh")]
    done = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (checkout / ".venv").exists()


def test_nothing_says_that_a_package_index_has_gpudiag() -> None:
    """Drop this test with the first release: until then a line to copy would fail."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "action.yml"]
    said = re.compile(r"(pip install|uv tool install|uv add|uvx) ['\"]?gpudiag(?! @)")
    assert [str(path.relative_to(ROOT)) for path in texts if said.search(path.read_text("utf-8"))] == []
