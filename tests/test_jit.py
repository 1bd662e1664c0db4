"""Compiled code is kept only where nobody else can write, and a cache that fails is no reason to fail."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

_SUM = """
import sys
import numpy as np
from gpudiag.jit import compiled
def double(values):
    total = 0
    for value in values:
        total += 2 * value
    return total
print(compiled(double)(np.arange(5)))
"""
_PLANTED = """
import os, pickle, sys
class Run:
    def __reduce__(self):
        return os.mkdir, (sys.argv[2],)
for folder, _, files in os.walk(sys.argv[1]):
    for name in files:
        if name.endswith(".nbi"):
            with open(os.path.join(folder, name), "wb") as file:
                pickle.dump(Run(), file)
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A program that compiles a function, in a folder that keeps nothing beside it."""
    file = tmp_path / "program" / "double.py"
    file.parent.mkdir()
    file.write_text(_SUM)
    return file


def run(module: Path, cache: Path, largest: int = resource.RLIM_INFINITY) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    return subprocess.run(
        [sys.executable, str(module)], env={**os.environ, "NUMBA_CACHE_DIR": str(cache)}, preexec_fn=limit,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_code_in_a_folder_of_everybody_is_not_run(module: Path, tmp_path: Path) -> None:
    cache, proof = tmp_path / "cache", tmp_path / "proof"
    cache.mkdir(mode=0o700)
    assert run(module, cache).stdout == "20\n"
    subprocess.run([sys.executable, "-c", _PLANTED, str(cache), str(proof)], check=True)
    cache.chmod(0o777)
    assert run(module, cache).stdout == "20\n"
    assert not proof.exists()


@pytest.mark.slow
def test_compiled_code_is_kept_in_a_private_folder(module: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    assert run(module, cache).stdout == "20\n"
    assert list(cache.rglob("*.nbc"))


@pytest.mark.slow
def test_a_full_disk_is_no_reason_to_fail(module: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    done = run(module, cache, largest=100)
    assert (done.returncode, done.stdout) == (0, "20\n"), done.stderr


@pytest.mark.slow
def test_damaged_code_is_compiled_again(module: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    run(module, cache)
    for file in cache.rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[:40])
    done = run(module, cache)
    assert (done.returncode, done.stdout) == (0, "20\n"), done.stderr
