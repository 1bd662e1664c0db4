"""Find and parse the knowledge: rules, views, remedies, settings and capabilities, packaged and the user's own.

Parsing checks shape and names only; what a query does is checked by `sql_check` and, for everything at once, by
`gpudiag rules check`. Rules and views from a user's folder are marked as such: they only ever run in the sandbox.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpudiag.errors import GpudiagError
from gpudiag.library import folder as rulefolder
from gpudiag.library import former_names, yaml_file
from gpudiag.library.catalogue import CREATES, Capability, Library
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.remedy import RemedyText, parse_remedy
from gpudiag.library.rule_file import check_edits, parse_rule, validate
from gpudiag.model import Frozen, Param, Rule

_NOT_RULES = {"settings.yaml", "capabilities.yaml", "renamed.yaml"}
_TEST_PRESETS = Path("test_presets.yaml")  # read by those who run tests alone


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a rule, view or remedy file, for its author."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def is_packaged(folder: Path) -> bool:
    """Return whether this is the packaged folder itself, as for a contributor who names it: its rules are known
    already.
    """
    return folder.resolve() == packaged_dir().resolve()


def load(
    user_dirs: Iterable[Path] = (), *, packaged: Path | None = None, edits: frozenset[str] | None = None
) -> Library:
    """The packaged library and the user's folders. Raises GpudiagError on the first file that is wrong.

    edits: the names that a price may give; None takes any, for those who price nothing.
    """
    user_dirs = list(user_dirs)
    root = packaged or packaged_dir()
    if not user_dirs and edits is None:
        return _alone(root, rulefolder.state(root))
    library, problems = scan(user_dirs, packaged=packaged, edits=edits)
    _refuse(problems)
    former_names.warn(user_dirs, library.former_used, library.former)
    return library


@lru_cache(maxsize=1)
def _alone(root: Path, _state: tuple[tuple[Path, int, int], ...]) -> Library:
    """The packaged library, parsed once for as long as its files stay as they are."""
    library, problems = scan((), packaged=root)
    _refuse(problems)
    return library


def _refuse(problems: list[Problem]) -> None:
    if problems:
        more = f" ({len(problems) - 1} more: `gpudiag rules check` lists all)" if len(problems) > 1 else ""
        raise GpudiagError(f"{problems[0]}{more}")


def scan(
    user_dirs: Iterable[Path] = (), *, packaged: Path | None = None, edits: frozenset[str] | None = None
) -> tuple[Library, list[Problem]]:
    """As `load`, but keeps going: what could be read, and every problem found. A file among the folders is one rule."""
    root = packaged or packaged_dir()
    try:
        scanner = _packaged(root, rulefolder.state(root), edits).copy()
    except GpudiagError:  # which the scanner notes as a problem
        scanner = _Scanner(edits)
        scanner.folder(root, own=True)
    for folder in user_dirs:
        if Path(folder).is_file():
            scanner.rule_file(Path(folder))
            continue
        if not Path(folder).is_dir():
            raise GpudiagError(f"{folder}: is not a folder; --rules wants a folder of rules.")
        if packaged or not is_packaged(Path(folder)):
            scanner.folder(Path(folder), own=False)
    return scanner.library(), scanner.problems


@lru_cache(maxsize=2)
def _packaged(root: Path, _state: tuple[tuple[Path, int, int], ...], edits: frozenset[str] | None) -> _Scanner:
    """The packaged folder, parsed once for as long as its files stay as they are."""
    scanner = _Scanner(edits)
    scanner.folder(root, own=True)
    return scanner


class _Scanner:
    """Collects files of several folders and notices what clashes."""

    def __init__(self, edits: frozenset[str] | None) -> None:
        self.edits = edits
        self.problems: list[Problem] = []
        self.rules: dict[str, Rule] = {}
        self.sources: dict[str, yaml_file.YamlFile] = {}
        self.user_codes: set[str] = set()
        self.views: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        self.view_names: dict[str, str] = {}
        self.remedies: dict[str, RemedyText] = {}
        self.settings: dict[str, Param] = {}
        self.former, self.former_used = former_names.FormerNames(), set[str]()
        self.capabilities: dict[str, Capability] = {}

    def copy(self) -> _Scanner:
        """Another one with what this one has found, to go on from there."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set):
                setattr(other, name, value.copy())
        other.views = {own: views.copy() for own, views in self.views.items()}
        return other

    def library(self) -> Library:
        return Library(
            rules=tuple(sorted(self.rules.values(), key=lambda rule: rule.code)),
            views=tuple(self.views[True]), user_views=tuple(self.views[False]), remedies=self.remedies,
            settings=self.settings, capabilities=self.capabilities, sources=self.sources,
            user_codes=frozenset(self.user_codes), former=self.former, former_used=frozenset(self.former_used),
        )  # fmt: skip

    def folder(self, root: Path, *, own: bool) -> None:
        if own:
            self.former = former_names.FormerNames.read(root / "renamed.yaml")
            self._table(root / "settings.yaml", Param, self.settings)
            self._table(root / "capabilities.yaml", Capability, self.capabilities)
        try:
            paths = rulefolder.files(root)
        except GpudiagError as error:
            self._problem(root, error)
            return
        for path in paths:
            try:
                if not own:
                    rulefolder.check(path, root)
                self._file(path, path.relative_to(root), own)
            except GpudiagError as error:
                self._problem(path, error)

    def rule_file(self, path: Path) -> None:
        """Read one rule of the user's, without the folder around it."""
        try:
            self._rule(path, path.resolve().parent.name, own=False)
        except GpudiagError as error:
            self._problem(path, error)

    def _file(self, path: Path, inside: Path, own: bool) -> None:
        if path.name.endswith(".test.yaml") or inside == _TEST_PRESETS:
            return
        if inside.parts[0] == "views":
            if path.suffix == ".sql":
                self._view(path, inside, own)
        elif inside.parts[0] == "remedies":
            if path.suffix == ".md" and path.name != "README.md":
                self._remedy(path)
        elif path.suffix == ".yaml" and path.name not in _NOT_RULES:
            self._rule(path, inside.parent.as_posix().strip("."), own)
        elif path.suffix == ".yml" or (path.name in _NOT_RULES and not own):
            raise GpudiagError(f"{path}: is not read; rules end in .yaml, and thresholds are set with --set.")

    def _problem(self, path: Path, error: GpudiagError) -> None:
        for text in str(error).splitlines():
            match = re.match(rf"{re.escape(str(path))}(?::(\d+))?: ", text)
            line, text = (int(match[1] or 1), text[match.end() :]) if match else (1, text)
            self.problems.append(Problem(path, line, text))

    def _rule(self, path: Path, family: str, own: bool) -> None:
        file = yaml_file.read(path)
        if not own and len(self.user_codes) >= rulefolder.MAX_RULES:
            raise GpudiagError(f"{path}: is one rule more than the {rulefolder.MAX_RULES} that one run may have.")
        if not own:
            file, used = self.former.rule(file)
            self.former_used |= used
        rule = parse_rule(file, family)
        check_edits(rule, file, self.edits)
        for other in self.rules.values():
            if rule.code == other.code or rule.id == other.id:
                what = f"code {rule.code}" if rule.code == other.code else f"id {rule.id}"
                taken = self.sources[other.code].path
                raise GpudiagError(f"{file.where(('code',))}: {what} is taken by {taken}; choose another.")
        self.rules[rule.code], self.sources[rule.code] = rule, file
        if not own:
            self.user_codes.add(rule.code)

    def _view(self, path: Path, inside: Path, own: bool) -> None:
        sql = yaml_file.read_text(path)
        if not own:
            sql, used = self.former.view(sql)
            self.former_used |= used
        names = [match[1].lower() for match in CREATES.finditer(sql)]
        if not names:
            raise GpudiagError(f"{path}: creates no view or macro; write `create view NAME as select …`.")
        for name in names:
            if name in self.view_names:
                raise GpudiagError(f"{path}: {name} is already created in {self.view_names[name]}; rename it.")
            self.view_names[name] = str(path)
        self.views[own].append((inside.relative_to("views").as_posix() if own else str(path), sql))

    def _remedy(self, path: Path) -> None:
        remedy = parse_remedy(path)
        if remedy.id in self.remedies:
            raise GpudiagError(f"{path}: remedy {remedy.id} exists already: {self.remedies[remedy.id].path}.")
        self.remedies[remedy.id] = remedy

    def _table(self, path: Path, model: type[Frozen], into: dict[str, Any]) -> None:
        if not path.exists():
            return
        try:
            file = yaml_file.read(path)
            for name, value in (file.data or {}).items():
                into[name] = validate(model, value, file, (name,))
        except GpudiagError as error:
            self._problem(path, error)
