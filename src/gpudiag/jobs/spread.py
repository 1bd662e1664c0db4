"""Ranks read one after another, by several processes, or by a Dask cluster: the same summaries, in the same order.

What a worker was reading when it was lost is read again by another one.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import connection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from gpudiag import remote, tempdir
from gpudiag.errors import GpudiagError
from gpudiag.jobs.map_rank import summarise
from gpudiag.jobs.rank_summary import RankSummary
from gpudiag.options import Options

if TYPE_CHECKING:
    from distributed import Client

Found = tuple[RankSummary, ...]
_ANSWERS_WITHIN_S = 20
_TRIES = 3
"""The number of times that a file is read: what ends three workers would end a fourth."""


def summaries(paths: Sequence[Path], options: Options) -> list[Found]:
    """The ranks in each file, in the order of the files. Raises GpudiagError, of several files for the first one."""
    workers = min(options.workers or 1, len(paths))
    if options.scheduler:
        options.progress(f"waiting up to {_ANSWERS_WITHIN_S} s for the scheduler at {options.scheduler}")
        with _cluster(options.scheduler) as client:
            return _by_dask(client, paths, options)
    if workers > 1:
        return _by_processes(paths, options, workers)
    found = []
    for number, path in enumerate(paths, 1):
        options.progress(f"reading {path.name}, file {number} of {len(paths)}")
        found.append(summarise(path, options))
    return found


def _work(path: Path, options: Options) -> Found | str:
    """One file in a worker: an error that belongs in a sentence travels as one."""
    try:
        return summarise(path, options)
    except GpudiagError as error:
        return str(error)


def _ends_tidily() -> None:
    """Make a worker end, without leaving files, on a signal and as soon as the process that started it has ended.

    A signal to the whole group reaches workers, too. What the system writes for it is read by a thread: Python itself
    would hear it after a query only.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:  # what is ignored already stays ignored: `nohup`
            signal.signal(number, _heard)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    parent = multiprocessing.parent_process()
    ends = [reading, parent.sentinel] if parent is not None else [reading]
    threading.Thread(target=_end_after, args=(ends,), daemon=True).start()


def _heard(_number: int, _frame: FrameType | None) -> None:
    """Stand in for a signal's own effect, which would end the process at once."""


def _end_after(ends: list[int]) -> None:
    connection.wait(ends)
    tempdir.remove_all()
    os._exit(1)


def _silent(_: str) -> None:
    """Workers say nothing: the process that waits for them does."""


def _quiet(options: Options) -> Options:
    return replace(options, progress=_silent, workers=None, scheduler=None)


def _collected(paths: Sequence[Path], found: dict[int, Found | str]) -> list[Found]:
    """All of them in order. Raises GpudiagError, of several files for the first one."""
    ordered = [found[number] for number in range(len(paths))]
    for one in ordered:
        if isinstance(one, str):
            raise GpudiagError(one)
    return [one for one in ordered if not isinstance(one, str)]


def _by_processes(paths: Sequence[Path], options: Options, workers: int) -> list[Found]:
    found: dict[int, Found | str] = {}
    for _ in range(_TRIES):
        left = [number for number in range(len(paths)) if number not in found]
        if not left:
            break
        with ProcessPoolExecutor(
            min(workers, len(left)), multiprocessing.get_context("spawn"), initializer=_ends_tidily
        ) as pool:
            waiting: dict[Future[Found | str], int] = {
                pool.submit(_work, paths[number], _quiet(options)): number for number in left
            }
            for done in as_completed(waiting):
                try:
                    found[waiting[done]] = done.result()
                except BrokenProcessPool:  # one of them was killed; the next round reads what is left
                    continue
                options.progress(f"read {paths[waiting[done]].name}, {len(found)} of {len(paths)} files")
    _refuse_lost(paths, found)
    return _collected(paths, found)


def _refuse_lost(paths: Sequence[Path], found: dict[int, Found | str]) -> None:
    lost = next((path for number, path in enumerate(paths) if number not in found), None)
    if lost:
        raise GpudiagError(
            f"{lost}: {_TRIES} workers were killed while they read it or others; give them more memory, or fewer "
            "--workers."
        )


@contextmanager
def _cluster(address: str) -> Iterator[Client]:
    """A client of the cluster whose scheduler listens at an address. Raises GpudiagError."""
    try:
        from distributed import Client
    except ImportError:
        raise GpudiagError(
            f"--scheduler {address} needs Dask, which is not installed: pip install distributed."
        ) from None
    if not re.fullmatch(r"\w+://[^/\s]+:\d+/?", address):
        raise GpudiagError(f"--scheduler {address}: this is no address of a scheduler, such as tcp://HOST:8786.")
    try:
        client = Client(address, timeout=_ANSWERS_WITHIN_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # the last one where tls:// lacks certificates
        raise GpudiagError(
            f"{address}: no Dask scheduler answers there within {_ANSWERS_WITHIN_S} s ({error}); check the address, and"
            " that it runs."
        ) from None
    try:
        yield client
    finally:
        client.close()


def _by_dask(client: Client, paths: Sequence[Path], options: Options) -> list[Found]:
    from distributed import as_completed as finished

    # Not pure: what a file holds may change between two runs on one cluster.
    futures = client.map(
        _work,
        [path if remote.address(path) else path.absolute() for path in paths],
        options=_quiet(options),
        pure=False,
        retries=_TRIES - 1,
    )
    numbers = {future.key: number for number, future in enumerate(futures)}
    found: dict[int, Found | str] = {}
    for future in finished(futures, loop=client.loop):
        number = numbers[future.key]
        try:
            found[number] = future.result()
        except Exception as error:  # whatever the cluster's own machinery raises
            raise GpudiagError(f"{paths[number]}: the cluster could not read it ({_first(error)}).") from error
        options.progress(f"read {paths[number].name}, {len(found)} of {len(paths)} files")
    return _collected(paths, found)


def _first(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
