"""A worker that is killed while it reads costs its files a second reading, and nothing else."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.packed import recording
from gpudiag.errors import GpudiagError
from gpudiag.jobs import spread
from gpudiag.jobs.rank_summary import packed
from gpudiag.options import Options
from paths import ROOT

CAPTURE = ROOT / "fixtures" / "captures" / "rollout_eager" / "slow"
pytestmark = [pytest.mark.slow, pytest.mark.capture]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A small capture several times over: reading them is what is tested, and summaries do not compare ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    files = [folder / f"rank{number}.sqlite" for number in range(6)]
    for file in files:
        shutil.copyfile(recording(CAPTURE), file)
    return files


@pytest.fixture(scope="module")
def alone(ranks: list[Path]) -> list[bytes]:
    """Their summaries, read one after another in this process."""
    return bytes_of(ranks, Options(cached=False))


def killer(times: int) -> tuple[Callable[[str], None], list[int]]:
    """Progress that kills a worker as often as that, each time that a file has been read; and whom it killed."""
    killed: list[int] = []

    def progress(said: str) -> None:
        alive = [worker for worker in multiprocessing.active_children() if worker.pid not in killed]
        if len(killed) < times and said.startswith("read ") and alive:
            os.kill(alive[0].pid or 0, signal.SIGKILL)
            killed.append(alive[0].pid or 0)

    return progress, killed


def bytes_of(files: list[Path], options: Options) -> list[bytes]:
    return [packed(found) for found in spread.summaries(files, options)]


def test_processes_that_are_killed_leave_nothing_out(ranks: list[Path], alone: list[bytes]) -> None:
    progress, killed = killer(1)
    assert bytes_of(ranks, Options(progress=progress, cached=False, workers=2)) == alone
    assert len(killed) == 1


def test_workers_of_a_cluster_that_are_killed_do_so_too(ranks: list[Path], alone: list[bytes]) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is an extra")
    progress, killed = killer(1)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, silence_logs=50, dashboard_address=None
    ) as cluster:
        there = Options(progress=progress, cached=False, scheduler=cluster.scheduler_address)
        assert bytes_of(ranks, there) == alone
    assert len(killed) == 1


def test_what_ends_every_worker_is_one_sentence(ranks: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "_work", _die)
    with pytest.raises(GpudiagError, match="workers were killed while they read it or others"):
        spread.summaries(ranks[:2], Options(cached=False, workers=2))


JOB = """
import sys
from pathlib import Path
from gpudiag.jobs import spread
from gpudiag.options import Options
spread.summaries([Path(one) for one in sys.argv[1:]], Options(cached=False, workers=2))
"""


def _of_session(leader: int) -> list[int]:
    """The other processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) == leader and entry.name != str(leader) and state != "Z":
            found.append(int(entry.name))
    return found


def _left_of_session(leader: int) -> list[int]:
    """Its processes once they have had half a minute to end."""
    for _ in range(600):
        if not (left := _of_session(leader)):
            break
        time.sleep(0.05)
    return left


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes as Linux does")
def test_workers_end_with_the_process_that_started_them(ranks: list[Path]) -> None:
    """A signal ends that one at once, without a word to its workers; what reads their output would wait for ever."""
    command = [sys.executable, "-c", JOB, *map(str, ranks)]
    parent = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(_of_session(parent.pid)) < 3 and parent.poll() is None:  # two workers, and what keeps track of them
        time.sleep(0.05)
    assert parent.poll() is None
    parent.kill()
    parent.wait()
    assert _left_of_session(parent.pid) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes as Linux does")
def test_a_signal_to_all_processes_leaves_no_files(ranks: list[Path], tmp_path: Path) -> None:
    """As a batch system ends a job, while each worker has its working copy open."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "gpudiag", "explain", *map(str, ranks), "--no-cache", "--workers", "2"]
    more = [tmp_path / f"more{number}.sqlite" for number in range(4)]
    for file in more:
        shutil.copyfile(ranks[0], file)
    parent = subprocess.Popen(
        [*command, *map(str, more)], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    while not any(one.suffix != ".lock" for one in temporary.glob("gpudiag-*")) and parent.poll() is None:
        time.sleep(0.01)
    assert parent.poll() is None
    os.killpg(parent.pid, signal.SIGTERM)
    parent.wait()
    assert _left_of_session(parent.pid) == []
    assert list(temporary.glob("gpudiag-*")) == []


def _die(_: Path, __: Options) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
