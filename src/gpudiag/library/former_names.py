"""Former names of views, columns and thresholds, replaced in the rules of users who wrote them for an earlier version.

Names are replaced token by token: in queries, in the expressions of templates, in keys; never in texts or comments. All
names of a file are replaced alike, so a query gives the same rows whatever it calls its own columns.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudiag.library import yaml_file

_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)|\$?[A-Za-z_]\w*|[(),.]", re.S)
_NAME = re.compile(r"\$?[A-Za-z_]\w*")
_CLAUSES = {"select", "from", "join", "where", "on", "using", "group", "order", "having", "window", "qualify", "limit"}
_SETTING = re.compile(r"(\bsetting\(\s*')(\w+)(?='\s*\))", re.I)  # the one text that is a name
_COLUMN_DOC = re.compile(r"^([ \t]*--   )(\w+)(?=: )", re.M)
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.S)
_IN_EXPRESSION = re.compile(
    r"""(?P<key>attribute\s*=\s*|\[\s*)(?P<quote>["'])(?P<name>\w+)(?P=quote)|"[^"]*"|'[^']*'|[A-Za-z_]\w*"""
)
_DEFINED = re.compile(r"\bas\s+\"?(\w+)\b(?!\s*\()|[\w\"]+(?=\"?\s+as\s+(?:not\s+)?(?:materialized\s+)?\()", re.I)
_MOST = 8  # names in a warning


class FormerNameWarning(FutureWarning):
    """A user's rules, configuration or options name something as an earlier version did."""


@dataclass(frozen=True, slots=True)
class FormerNames:
    """The table of former names: `rules/renamed.yaml`."""

    views: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    """Former id of a rule → its id."""
    moved: Mapping[str, str | list[Any]] = field(default_factory=dict)
    """Former `CODE.param` → the threshold that holds for it now, with a factor where the unit is another one."""

    @classmethod
    def read(cls, path: Path) -> FormerNames:
        """The table in a file; an empty one where there is none. Raises GpudiagError."""
        tables = yaml_file.read(path).data if path.exists() else {}
        return cls(*(tables.get(name, {}) for name in ("views", "columns", "words", "params", "rules", "moved")))

    def name(self, name: str, *, relation: bool = False) -> str:
        """The present name of a column, threshold or view; `name` itself where it has not changed.

        relation: whether a view is meant, where a column has the same name.
        """
        if name.startswith("$"):
            return f"${self.name(name[1:])}"
        if name in self.views and (relation or not self._of_words(name)):
            return self.views[name]
        return self.columns.get(name) or self._of_words(name) or self.views.get(name, name)

    def _of_words(self, name: str) -> str:
        """The name with its former words replaced; empty where it holds none."""
        parts = name.split("_")
        if not self.words.keys() & set(parts) or (name in self.views and len(parts) > 1):
            return ""
        return "_".join(self.words.get(part, part) for part in parts)

    def threshold(self, name: str) -> str:
        """The present `CODE.param` or `settings.name` of a threshold."""
        owner, _, param = name.partition(".")
        return f"{owner}.{self.params.get(name) or self.name(param)}"

    def setting(self, name: str) -> tuple[str, float]:
        """The threshold that `--set` means by a former name, and what its value is to be multiplied with."""
        present = self.threshold(name)
        found = self.moved.get(present, present)
        return (found, 1) if isinstance(found, str) else (str(found[0]), float(found[1]))

    def query(self, sql: str) -> str:
        """SQL with present names."""
        sql = _SETTING.sub(lambda m: m[1] + self.threshold(f"settings.{m[2]}").partition(".")[2], sql)
        tokens = _tokens(sql)
        named = {text.lower() for text, _, relation in tokens if relation}
        out, end = [], 0
        for number, (text, start, relation) in enumerate(tokens):
            qualifies = text.lower() in named and number + 1 < len(tokens) and tokens[number + 1][0] == "."
            out += [sql[end:start], self.name(text, relation=relation or qualifies) if _NAME.fullmatch(text) else text]
            end = start + len(text)
        return "".join([*out, sql[end:]])

    def view(self, sql: str) -> tuple[str, frozenset[str]]:
        """A file of views with present names, also where its comments document columns; and the former ones it uses."""
        present = _COLUMN_DOC.sub(lambda m: m[1] + self.name(m[2]), self.query(sql))
        used = _replaced(sql, present) - self._own(sql)
        return (present, used) if used else (sql, used)

    def _own(self, sql: str) -> frozenset[str]:
        """Names of former views that a query gives to its own columns and parts: these are no former names."""
        defined = {(match[1] or match[0]).strip('"') for match in _DEFINED.finditer(sql)}
        return frozenset(name for name in defined & self.views.keys() if not self._of_words(name))

    def template(self, text: str) -> str:
        """A template with present names in its expressions."""

        def one(found: re.Match[str]) -> str:
            if found["name"]:
                return f"{found['key']}{found['quote']}{self.name(found['name'])}{found['quote']}"
            return self.name(found[0]) if _NAME.fullmatch(found[0]) else found[0]

        return _EXPRESSION.sub(lambda m: _IN_EXPRESSION.sub(one, m[0]), text)

    def rule(self, file: yaml_file.YamlFile) -> tuple[yaml_file.YamlFile, frozenset[str]]:
        """A rule's file with present names, and the former ones that it uses and does not itself define."""
        data = file.data
        if not isinstance(data, dict):
            return file, frozenset()
        changes: dict[str, Callable[[Any], Any]] = {"query": self.query, "message": self.template}
        changes |= {"headline": self.template, "params": self.keys}
        changes["needs"] = lambda needs: [re.sub(r"\w+", lambda m: self.name(m[0]), need) for need in needs]
        changes["price"] = lambda price: {**price, "on": self.name(price["on"])} if "on" in price else price
        changes["evidence"] = self._columns
        kinds: dict[str, Any] = {"params": dict, "price": dict, "needs": list, "evidence": (dict, list)}
        fits = {key: change for key, change in changes.items() if isinstance(data.get(key), kinds.get(key, str))}
        present = {key: fits[key](value) if key in fits else value for key, value in data.items()}
        replaced = frozenset[str]().union(*(_replaced(str(data[key]), str(present[key])) for key in fits))
        used = replaced - self._own(str(data.get("query", "")))
        return (replace(file, data=present), used) if used else (file, used)

    def case(self, file: yaml_file.YamlFile) -> yaml_file.YamlFile:
        """The test of a rule with present names of the columns that it expects and of thresholds."""
        if not isinstance(file.data, dict):
            return file
        cases = {}
        for name, case in file.data.items():
            if isinstance(case, dict):
                case = {key: self._expected(key, value) for key, value in case.items()}
            cases[name] = case
        return replace(file, data=cases)

    def _expected(self, key: str, value: Any) -> Any:
        if key == "expect" and isinstance(value, list):
            return [self.keys(row) for row in value]
        if key == "settings" and isinstance(value, dict):
            return {self.threshold(f"settings.{name}").partition(".")[2]: each for name, each in value.items()}
        return self.keys(value) if key == "params" else value

    def keys(self, values: Any) -> Any:
        """A mapping with present names; anything else as it is."""
        return {self.name(str(key)): value for key, value in values.items()} if isinstance(values, dict) else values

    def _columns(self, items: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        """Columns with present names, with or without what is said of them."""
        return self.keys(items) if isinstance(items, dict) else [self.name(str(item)) for item in items]


def warn(folders: Iterable[Path], used: Iterable[str], table: FormerNames) -> None:
    """Tell the author of rules, in one line, which former names they use."""
    listed = [f"{name} → {table.name(name)}" for name in sorted(used)]
    if not listed:
        return
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    text = f"{', '.join(map(str, folders))}: uses former names, which only this version still knows: "
    warnings.warn(f"{text}{', '.join(listed[:_MOST])}{more}.", FormerNameWarning, stacklevel=4)


def _tokens(sql: str) -> list[tuple[str, int, bool]]:
    """Each token, where it starts, and whether it stands where a relation is named."""
    tokens: list[tuple[str, int, bool]] = []
    clauses, before = [""], ""
    for match in _TOKEN.finditer(sql):
        text = match[0].lower()
        relation = before in ("from", "join", "view") or (before == "," and clauses[-1] in ("from", "join"))
        tokens.append((match[0], match.start(), relation and bool(_NAME.fullmatch(text))))
        if text == "(":
            clauses.append("")
        elif text == ")" and len(clauses) > 1:
            clauses.pop()
        elif text in _CLAUSES:
            clauses[-1] = text
        if not text.startswith(("--", "/*")):
            before = text
    return tokens


def _replaced(before: str, after: str) -> frozenset[str]:
    """Names that stand more often in the one than in the other."""
    counts = (Counter(name.lstrip("$") for name in _NAME.findall(text)) for text in (before, after))
    return frozenset(next(counts) - next(counts))
