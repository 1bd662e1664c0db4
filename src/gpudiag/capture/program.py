"""The program that is recorded, as far as its command line shows: a launcher of ranks, Python or not."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpudiag.errors import GpudiagError

_PYTHON = re.compile(r"(python|pypy)[\d.]*(-dbg)?")
_TORCHRUN = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_RANK_VARIABLES = {"srun": "SLURM_PROCID", "mpirun": "OMPI_COMM_WORLD_RANK", "mpiexec": "OMPI_COMM_WORLD_RANK"}
"""Slurm's and Open MPI's own; launchers of MPICH and Intel MPI are known by their longer names."""
_HYDRA = {"mpiexec.hydra": "PMI_RANK", "mpirun.mpich": "PMI_RANK", "mpiexec.mpich": "PMI_RANK"}


@dataclass(frozen=True)
class Program:
    """A command line in two parts: what starts the ranks (often nothing), and what one rank runs."""

    launcher: tuple[str, ...]
    rank: tuple[str, ...]
    rank_variable: str | None
    """The variable by which a rank knows its number; None for a single process."""
    python: bool

    def around(self, profiler: Sequence[str]) -> list[str]:
        """Return the command line with a profiler in each rank, or around the program where there are no ranks."""
        return [*self.launcher, *profiler, *self.rank]


def look_at(words: Sequence[str]) -> Program:
    """Recognise launchers and Python. What is not recognised is run as it is, as one process."""
    name = os.path.basename(words[0])
    if at := _after_torchrun(words):
        return _under_torchrun(words, at)
    variable = {**_RANK_VARIABLES, **_HYDRA}.get(name)
    if variable and (at := _begin_of_rank(words)):
        return Program(tuple(words[:at]), tuple(words[at:]), variable, is_python(words[at]))
    return Program((), tuple(words), None, is_python(words[0]) or any(map(_names_python, words[1:])))


def interpreter(program: Program) -> str | None:
    """Return the Python that runs the program, where its command line names one."""
    word = program.rank[0]
    return word if _PYTHON.fullmatch(os.path.basename(word)) else None


def require(program: Program) -> None:
    """Raise GpudiagError where the program, or its launcher, is not there; nsys would say so in its own words."""
    for words in (program.launcher, program.rank):
        if words and shutil.which(words[0]) is None:
            if words[0].endswith(".py") and os.path.isfile(words[0]):
                raise GpudiagError(f"{words[0]} is no program by itself: write `python {words[0]}` after `--`.")
            raise GpudiagError(f"{words[0]}: there is no such program; check the command after `--`.")


def _after_torchrun(words: Sequence[str]) -> int:
    """Return where torchrun's own options begin; 0 for another program."""
    if os.path.basename(words[0]) in _TORCHRUN:
        return 1
    if _PYTHON.fullmatch(os.path.basename(words[0])) and words[1:2] == ["-m"] and words[2:3]:
        return 3 if words[2] in _TORCHRUN else 0
    return 0


def _under_torchrun(words: Sequence[str], begin: int) -> Program:
    """Have torchrun start any program in its ranks: it starts Python itself unless it is asked not to."""
    asked = {"--no-python", "--no_python"} & set(words[begin:])
    for at in range(begin, len(words)):
        if asked and _is_program(words[at]):
            return Program(tuple(words[:at]), tuple(words[at:]), "RANK", is_python(words[at]))
        if not asked and words[at] in ("-m", "--module"):
            rank = (_interpreter(words), "-u", "-m", *words[at + 1 :])
            return Program((*words[:at], "--no-python"), rank, "RANK", python=True)
        if not asked and words[at].endswith(".py"):
            rank = (_interpreter(words), "-u", *words[at:])
            return Program((*words[:at], "--no-python"), rank, "RANK", python=True)
    return Program((), tuple(words), None, python=True)


def _interpreter(words: Sequence[str]) -> str:
    """Return the Python that torchrun would start: the one that it runs in itself."""
    if _PYTHON.fullmatch(os.path.basename(words[0])):
        return words[0]
    found = shutil.which(words[0])
    beside = Path(found).parent / "python3" if found else None
    return str(beside) if beside and os.access(beside, os.X_OK) else "python3"


def _begin_of_rank(words: Sequence[str]) -> int:
    """Return where the rank's program stands: a value such as the `node` of `--map-by node` may be called like one."""
    found = [at for at in range(1, len(words)) if _is_program(words[at])]
    sure = [at for at in found if not words[at - 1].startswith("-") or "/" in words[at] or _PYTHON.fullmatch(words[at])]
    return (sure or found or [0])[0]


def _is_program(word: str) -> bool:
    return not word.startswith("-") and not word.isdecimal() and shutil.which(word) is not None


def _names_python(word: str) -> bool:
    """Return whether an argument names Python or a script: those of `env`, `uv run`, `bash` and their like do."""
    name = os.path.basename(word)
    return _PYTHON.fullmatch(name) is not None or name.endswith((".py", ".sh"))


def is_python(word: str) -> bool:
    """Return whether the program may be Python: by its name, or because it is a script of any kind."""
    name = os.path.basename(word)
    if _PYTHON.fullmatch(name) or name.endswith(".py"):
        return True
    found = shutil.which(word)
    if not found:
        return False
    with open(found, "rb") as file:
        return file.read(2) == b"#!"  # a shell script may start Python, too
