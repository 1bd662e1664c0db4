"""One input: files in a folder of its own, and the command that is given them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Sound:
    """Gpudiag's answer on an undamaged sample."""

    state: str
    said: tuple[str, ...]
    """Codes of its notes, and of the rules that it could not answer."""


@dataclass
class Given:
    """Input of a run. A step changes it in place.

    files: name within the folder → content; a name may hold slashes. special: name → `fifo`, `folder` or `link TARGET`.
    words: the command line after `gpudiag`, in which `@NAME` stands for the path of a file.
    """

    files: dict[str, bytes]
    words: list[str]
    main: str
    special: dict[str, str] = field(default_factory=dict)
    sound: Sound | None = None
    """What is said of the sample itself, where the damage can only take facts away."""

    @property
    def content(self) -> bytes:
        return self.files.get(self.main, b"")

    @content.setter
    def content(self, content: bytes) -> None:
        if self.main in self.files:  # a step before may have taken it away
            self.files[self.main] = content

    def rename(self, name: str) -> None:
        """Give the main file another name."""
        if self.main not in self.files:
            return
        self.files[name] = self.files.pop(self.main)
        self.words = [f"@{name}" if word == f"@{self.main}" else word for word in self.words]
        self.main = name

    def copy(self) -> Given:
        return Given(dict(self.files), list(self.words), self.main, dict(self.special), self.sound)

    def write(self, folder: Path) -> None:
        """Lay the files out in the folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name, kind in self.special.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "fifo":
                os.mkfifo(path)
            elif kind == "folder":
                path.mkdir(exist_ok=True)
            else:
                path.symlink_to(kind.removeprefix("link "))

    def command(self, folder: Path) -> list[str]:
        """The command line, with paths for names."""
        return [str(folder / word[1:]) if word.startswith("@") else word for word in self.words]


def random_of(*parts: object) -> Random:
    """A generator that the parts decide, on every machine and in every version of Python."""
    return Random("/".join(map(str, parts)))  # noqa: S311  reproducible, not secret
