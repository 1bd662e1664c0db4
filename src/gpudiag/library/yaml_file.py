"""YAML that points back at its line: safe, small, and with YAML 1.2 scalars.

PyYAML reads YAML 1.1, where the key `on` is the boolean true and `1e6` is a text; editors validate YAML 1.2. The
loader here resolves scalars as YAML 1.2 does, so that what the editor accepts is what is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from gpudiag.errors import GpudiagError

MAX_BYTES = 256 * 1024  # the longest rule is a few KB; anything near this is not a rule
MAX_ALIASES = 20  # enough to share a row in a test; far too few for a "billion laughs" file,
MAX_VALUES = 20_000  # even where each of them doubles what it repeats; the longest test of ours holds 1,500
MAX_DEPTH = 40  # libyaml overflows the stack, and the process dies, on nesting of some ten thousand

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser is ten times faster


class _Loader(_Base):  # type: ignore[misc]
    """Safe tags only; YAML 1.2 core scalars; repeated keys are errors."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


_resolve("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF")
_resolve("int", r"^[-+]?[0-9]+$", "-+0123456789")
_resolve("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789")
_resolve("null", r"^(?:~|null|Null|NULL|)$", "~nN\0")
_Loader.yaml_implicit_resolvers.setdefault("", []).append(("tag:yaml.org,2002:null", re.compile(r"^$")))
# YAML 1.1 reads 017 as octal and 1:30 as sexagesimal; both are plain texts or decimals in 1.2.
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
_Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A file's data, and the line on which each part of it begins."""

    path: Path
    data: Any
    lines: dict[Loc, int]

    def line(self, loc: Iterable[str | int]) -> int:
        """The line of `loc`, or of its nearest part that the file does hold."""
        key = tuple(loc)
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)

    def where(self, loc: Iterable[str | int] = ()) -> str:
        return f"{self.path}:{self.line(loc)}"


def read(path: Path) -> YamlFile:
    """Read one YAML document. Raises GpudiagError that names file, line and what is wrong."""
    return parse(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of a small regular file: what a pipe or a device would give never ends. Raises GpudiagError."""
    try:
        # Opened first, then looked at: another file may take its name meanwhile. A pipe without writer does not block.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise IsADirectoryError
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise GpudiagError(f"{path}: is larger than {MAX_BYTES // 1024} KiB; split it into smaller files.")
        return data.decode("utf-8-sig")  # some editors begin a file with a byte-order mark
    except IsADirectoryError:
        raise GpudiagError(f"{path}: is not a regular file; remove or rename it.") from None
    except OSError as error:
        raise GpudiagError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError as error:
        raise GpudiagError(f"{path}: is not UTF-8 at byte {error.start}; save it as UTF-8.") from None


def parse(text: str, path: Path) -> YamlFile:
    """Parse `text`; `path` is only what errors call it. Raises GpudiagError."""
    try:
        _refuse_bombs(text, path)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            lines: dict[Loc, int] = {}
            if node is None:
                return YamlFile(path, None, lines)
            _mark(node, (), lines, path, set())
            return YamlFile(path, loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or error.context
        hint = "; quote a text that holds a colon" if "mapping values" in str(problem) else ""
        raise GpudiagError(f"{path}:{line}: {problem}{hint}.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise GpudiagError(f"{path}: is not YAML ({' '.join(str(error).split())}).") from None


def _refuse_bombs(text: str, path: Path) -> None:
    """Events are parsed without recursion, so this is safe on any text; composing nodes is not."""
    aliases = depth = values = 0
    for event in yaml.parse(text, _Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        aliases += isinstance(event, yaml.AliasEvent)
        values += isinstance(event, yaml.ScalarEvent)
        if tag := getattr(event, "tag", None):
            # What a tag makes of a value is Python's business, and half of those that YAML names end in a traceback.
            raise GpudiagError(f"{path}:{line}: uses the YAML tag {tag:.40}; write the plain value.")
        if values > MAX_VALUES:
            raise GpudiagError(f"{path}:{line}: holds more than {MAX_VALUES:,} values; that is no rule.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise GpudiagError(f"{path}: is nested more than {MAX_DEPTH} levels deep; that is no rule.")
    if aliases > MAX_ALIASES:
        raise GpudiagError(f"{path}: uses {aliases} YAML aliases; write the values out (at most {MAX_ALIASES}).")


def _mark(node: yaml.Node, loc: Loc, lines: dict[Loc, int], path: Path, open_nodes: set[int]) -> None:
    if id(node) in open_nodes:
        raise GpudiagError(f"{path}:{node.start_mark.line + 1}: an alias contains itself; write the value out.")
    lines.setdefault(loc, node.start_mark.line + 1)
    if len(lines) > MAX_VALUES:
        raise GpudiagError(f"{path}: its aliases stand for more than {MAX_VALUES:,} values; write out those it needs.")
    open_nodes.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[Hashable] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise GpudiagError(f"{path}:{key.start_mark.line + 1}: the key {name!r} is given twice; keep one.")
            seen.add(name)
            lines[(*loc, name)] = key.start_mark.line + 1
            _mark(value, (*loc, name), lines, path, open_nodes)
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            _mark(value, (*loc, position), lines, path, open_nodes)
    open_nodes.discard(id(node))
