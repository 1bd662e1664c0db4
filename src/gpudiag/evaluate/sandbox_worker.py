"""A process of its own that answers questions one by one, within limits, and ends with its parent.

Untrusted rules run here: DuckDB's own limits are not enough, as `repeat('x', 2e9)` ignores its memory limit and an
interrupt can take seconds. The child limits itself before it reads any untrusted file; the parent kills it when its
time is up, and sends the remaining questions to a new one. So a question that breaks the child spoils no other answer.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Job = dict[str, Any]
Answer = dict[str, Any]
Work = Callable[[Any], Answer]

MAX_BYTES = 8 << 20  # of JSON, one answer: a parent that reads more could be made to run out of memory, and
MAX_BYTES_IN_ALL = 32 << 20  # likewise by many of them
MAX_REASON = 500  # characters: DuckDB's messages repeat the value that they complain of
_CHUNK = 1 << 16
_IMPORTED = (
    "duckdb", "_duckdb", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection",
)  # fmt: skip
_SPARE = 1 << 16  # bytes that an answer has around its text
_LAST_WORD_SECONDS = 8  # for a process whose answer has ended to end too
_PATIENCE = 8  # seconds by the clock for each of processor time: the machine may have other work


@dataclass(frozen=True, slots=True)
class Limits:
    """Safety constants, not thresholds: no rule of ours comes near them, so nobody needs to tune them.

    Seconds are processor time, so that a busy machine stops no rule that an idle one runs.
    """

    seconds: float = 10.0  # a question; packaged rules take well below one on eight million rows
    seconds_in_all: float = 30.0  # after which no other question is asked: a thousand endless rules are a hang, too
    database_mb: int = 640  # what DuckDB may hold by its own count
    process_mb: int = 1152  # address space of the whole child: DuckDB's arenas, and what escapes its count


def ask(
    module: str, job: Mapping[str, Any], questions: Sequence[Any], limits: Limits, folder: str = "/"
) -> list[Answer | str]:
    """Yield what `module` (see `serve`) answers to each question about a job, or the reason why there is no answer.

    `folder` is where relative paths of the job begin.
    """
    answers: list[Answer | str] = []
    until = time.monotonic() + limits.seconds_in_all * _PATIENCE
    room, spent = MAX_BYTES_IN_ALL, 0.0
    while len(answers) < len(questions):
        if spent >= limits.seconds_in_all or time.monotonic() >= until:
            reason = f"was not started: those before it took {limits.seconds_in_all:g} s, the most for all together"
        elif room <= 0:
            reason = f"was not started: those before it gave {MAX_BYTES_IN_ALL >> 20} MB, the most for all together"
        else:
            left = {**job, "questions": questions[len(answers) :], "limits": _for_child(limits)}
            with _started(module, left, folder) as child:
                for answer, size, seconds in _answers(child, limits):
                    answers.append(answer)
                    room -= size
                    spent += seconds
                    late = spent >= limits.seconds_in_all or time.monotonic() >= until
                    if late or room <= 0 or len(answers) == len(questions):
                        break
            continue
        answers += [reason] * (len(questions) - len(answers))
    return answers


def _for_child(limits: Limits) -> dict[str, float]:
    return {"process_mb": limits.process_mb, "seconds": limits.seconds, "parent": os.getpid(),
            "seconds_in_all": limits.seconds_in_all, "alarm": limits.seconds * _PATIENCE}  # fmt: skip


@contextmanager
def _started(module: str, job: Job, folder: str) -> Iterator[subprocess.Popen[bytes]]:
    """The child, which answers on its stdout. It is killed in the end, however that comes."""
    # Nothing of the user's environment reaches the child (no credentials, no start-up hooks) but what Python may need
    # to start at all: clusters install it where the loader does not look by itself, and packages where only the user's
    # PYTHONPATH leads. Of that the child gets the folders of what it imports.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    env |= {"PYTHONPATH": os.pathsep.join(_folders()), "PYTHONDONTWRITEBYTECODE": "1"}
    # One arena and one thread: each more reserves address space, which would count without being used.
    env |= {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-m", module], env=env, cwd=folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # it died at once; that it answers nothing says so
            process.stdin.write(json.dumps(job).encode())
            process.stdin.close()
        yield process
    finally:
        process.kill()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()


def _folders() -> list[str]:
    """Return the folders of gpudiag and of the packages that the child imports."""
    own = str(Path(__file__).resolve().parents[2])
    named = [getattr(sys.modules.get(name), "__file__", None) for name in _IMPORTED]
    files = [Path(name).resolve() for name in named if name]
    return list(dict.fromkeys([own, *(str(file.parents[file.name == "__init__.py"]) for file in files)]))


def _answers(child: subprocess.Popen[bytes], limits: Limits) -> Iterator[tuple[Answer | str, int, float]]:
    """Answers, their sizes and what processor time they took (s), until one says that its child is spent."""
    assert child.stdout is not None
    held = bytearray()
    late = f"was stopped after {limits.seconds:g} s, the most that a rule of yours may take"
    while True:
        try:
            line = _line(child.stdout.fileno(), held, limits.seconds * _PATIENCE)
        except TimeoutError:
            yield late, 0, limits.seconds
            return
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            if not line and _ended(child) in (-signal.SIGPROF, -signal.SIGALRM):
                yield late, 0, limits.seconds
            else:
                yield f"was stopped: it took more than {limits.process_mb} MB, or crashed", len(line), 0.0
            return
        yield answer, len(line), answer.pop("seconds")
        if answer.get("spent"):
            return


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    """Exit code of a child whose answers have ended; None if it still runs."""
    with suppress(subprocess.TimeoutExpired):
        return child.wait(_LAST_WORD_SECONDS)
    return None


def _line(pipe: int, held: bytearray, seconds: float) -> bytes:
    """The next line of a pipe, less its end; what the pipe still held, when it has ended. Raises TimeoutError."""
    until = time.monotonic() + seconds
    seen = 0
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (end := held.find(b"\n", seen)) < 0 and len(held) <= MAX_BYTES + _SPARE:
            seen = len(held)
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            if not (got := os.read(pipe, _CHUNK)):
                break
            held += got
    line = bytes(held[:end]) if end >= 0 else b""
    del held[: end + 1]
    return line


# --- in the child ---------------------------------------------------------------------------------------------------


def serve(prepare: Callable[[Job], Work], *, closed: bool = True) -> None:
    """Limit this process; then one job on stdin, and for each of its questions an answer, a line each, on stdout.

    `prepare` makes what answers them. Once it has, no file, pipe or socket can be opened any more, where `closed`.
    """
    job: Job = json.load(sys.stdin)
    _limit(job["limits"])
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints may pass for an answer
    work: Work | None = None
    for question in job["questions"]:
        began = time.process_time()
        _stop_after(job["limits"])
        try:
            if work is None:
                work = prepare(job)
                if closed:
                    _close_off()
                _stop_after(job["limits"])
            answer = work(question)
        except MemoryError:
            reason = f"was stopped: it needed more than {job['limits']['process_mb']} MB of memory"
            answer = {"refused": reason, "spent": True}
        except RecursionError:
            answer = {"refused": "is nested too deeply"}
        answers.write(f"{_text(answer, time.process_time() - began)}\n")
        answers.flush()
        if answer.get("spent"):
            return


def _stop_after(limits: Mapping[str, float]) -> None:
    """End this process when it has computed for as long as a question may take, and in the end if it sleeps."""
    signal.setitimer(signal.ITIMER_PROF, limits["seconds"])
    signal.alarm(int(limits["alarm"]) + 1)


def _text(answer: Answer, seconds: float) -> str:
    answer = {**answer, "seconds": seconds}
    if "refused" in answer:
        answer["refused"] = _short(str(answer["refused"]))
    try:
        text = json.dumps(answer)
    except (RecursionError, MemoryError):
        text = " " * (MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        reason = f"gives more than {MAX_BYTES >> 20} MB; select fewer columns or rows"
        text = json.dumps({"refused": reason, "seconds": seconds})
    return text


def _short(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"


def _limit(limits: Mapping[str, float]) -> None:
    import resource  # only POSIX has it, and only the child needs it

    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches the child as well: it has nothing to tidy up
    _die_with(int(limits["parent"]))
    size, cpu = int(limits["process_mb"]) << 20, int(limits["seconds_in_all"] + limits["seconds"]) + 2
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _die_with(parent: int) -> None:
    """A parent that is killed cannot stop its child. The alarm does, in the end; the kernel does at once."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before that
            os._exit(1)


def _close_off() -> None:
    """From here on nothing can be opened: DuckDB refuses files and network, too, but this outlasts its mistakes."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
