"""Everything the tool knows, loaded: rules, views, remedies, settings and capabilities."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from gpudiag.errors import GpudiagError
from gpudiag.library import former_names, yaml_file
from gpudiag.library.remedy import RemedyText
from gpudiag.library.rule_file import near
from gpudiag.model import Frozen, Param, Rule, Text

_RANGES = {"share": (0.0, 1.0), "cosine": (0.0, 1.0), "times": (1.0, math.inf)}  # units that do not allow every value


class Capability(Frozen):
    """One kind of evidence: what it is, how to say that it is missing, and the flags that record it."""

    meaning: Text
    missing: Text
    flag: Text
    torch: Text | None = None
    """The option that records it with torch.profiler, where that can."""
    lost: Text | None = None
    """What to do where the host's calls were traced and this was not reported."""
    in_python: bool = False  # whether only programs in Python have it
    used_by: Text | None = None
    """What uses it, where no rule asks for it by name."""
    reserved: Text | None = None
    """What will use it, where nothing does yet: no page advises to record it."""


class RenamedRuleWarning(FutureWarning):
    """A rule was named by an id that it no longer has."""


@dataclass(frozen=True)
class Library:
    """Everything the tool knows. Immutable; `with_overrides` gives another one."""

    rules: tuple[Rule, ...] = ()
    views: tuple[tuple[str, str], ...] = ()
    user_views: tuple[tuple[str, str], ...] = ()
    remedies: Mapping[str, RemedyText] = field(default_factory=dict)
    settings: Mapping[str, Param] = field(default_factory=dict)
    capabilities: Mapping[str, Capability] = field(default_factory=dict)
    sources: Mapping[str, yaml_file.YamlFile] = field(default_factory=dict)
    user_codes: frozenset[str] = frozenset()
    former: former_names.FormerNames = field(default_factory=former_names.FormerNames)
    former_used: frozenset[str] = frozenset()
    """Former names in the rules of the user."""

    @cached_property
    def by_code(self) -> dict[str, Rule]:
        return {rule.code: rule for rule in self.rules}

    @cached_property
    def budget_parts(self) -> dict[str, tuple[str, ...]]:
        """Code of a rule → the parts of the time budget that its findings explain."""
        return {rule.code: rule.budget for rule in self.rules}

    @property
    def packaged_rules(self) -> tuple[Rule, ...]:
        """Rules that ship with the tool and may run in this process."""
        return tuple(rule for rule in self.rules if rule.code not in self.user_codes)

    @property
    def job_views(self) -> tuple[tuple[str, str], ...]:
        """Packaged views over the tables of a job."""
        return tuple((file, sql) for file, sql in self.views if file.startswith("jobs/"))

    @property
    def capture_views(self) -> tuple[tuple[str, str], ...]:
        """Packaged views and macros over the tables of captures."""
        return tuple((file, sql) for file, sql in self.views if not file.startswith("jobs/"))

    @property
    def user_rules(self) -> tuple[Rule, ...]:
        """Rules from the user's folders: these run in the sandbox only."""
        return tuple(rule for rule in self.rules if rule.code in self.user_codes)

    @cached_property
    def view_names(self) -> frozenset[str]:
        """Packaged views and macros that rules may use: all but those whose name begins with an underscore.

        What a user's file creates is known only once DuckDB's parser has read it: see `sandbox.create_views`.
        """
        names = (match[1].lower() for _, sql in self.views for match in CREATES.finditer(sql))
        return frozenset(name for name in names if not name.startswith("_"))

    @property
    def setting_values(self) -> dict[str, float]:
        return {name: param.value for name, param in self.settings.items()}

    def find(self, code_or_id: str) -> Rule:
        """The rule of that code, id or former id. Raises GpudiagError with the nearest names."""
        if rule := self.named(code_or_id):
            return rule
        names = [name for rule in self.rules for name in (rule.code, rule.id)]
        raise GpudiagError(f"There is no rule {code_or_id!r}{near(code_or_id, names)}; see `gpudiag rules list`.")

    def named(self, code_or_id: str) -> Rule | None:
        """The rule of that code, id or former id, if there is one. Warns of a former id."""
        rules = self.by_code | {rule.id: rule for rule in self.rules}
        name = code_or_id.lower()
        if rule := rules.get(code_or_id.upper()) or rules.get(name):
            return rule
        if rule := rules.get(self.former.rules.get(name, "")):
            warnings.warn(f"The rule {name} is now called {rule.id} ({rule.code}).", RenamedRuleWarning, stacklevel=3)
        return rule

    def capability(self, name: str) -> Capability | None:
        """The capability called `name`; `ncu_*` stands for any section that has no entry of its own."""
        known, section = self.capabilities.get(name), self.capabilities.get("ncu_*")
        if known or section is None or not name.startswith("ncu_"):
            return known
        texts = {key: text.replace("{section}", name.removeprefix("ncu_")) for key, text in section if text}
        return section.model_copy(update=texts)

    def about_python(self, rule: Rule) -> bool:
        """Return whether the rule needs evidence that only programs in Python have."""
        return any(all(map(self._in_python, wanted.split("|"))) for wanted in rule.requires)

    def _in_python(self, name: str) -> bool:
        about = self.capability(name)
        return about is not None and about.in_python

    def but_python(self, rule: Rule, reason: str) -> str:
        """The reason for which a rule is not evaluated, without evidence that programs in other languages have not."""
        names = (name for wanted in rule.requires for name in wanted.split("|"))
        for about in (self.capability(name) for name in names):
            if about is not None and about.in_python:
                reason = reason.replace(f", and {about.missing}", "")
        return reason

    def with_overrides(self, values: Mapping[str, float]) -> Library:
        """The library with other thresholds: `H01.min_share` or `settings.idle_noise_ns` → value.

        A rule may also be named by its id: `launch-bound.min_idle_share`.
        """
        if not values:
            return self  # with what it has worked out already: most of hundreds of test cases change nothing
        rules, settings = dict(self.by_code), dict(self.settings)
        for name, value in self._present(values).items():
            owner, _, param = name.partition(".")
            if owner not in rules and (rule := self.named(owner)):
                owner = rule.code
            if owner == "settings" and param in settings:
                settings[param] = _with_value(settings[param], name, value)
            elif owner in rules and param in rules[owner].params:
                params = {**rules[owner].params, param: _with_value(rules[owner].params[param], name, value)}
                rules[owner] = rules[owner].model_copy(update={"params": params})
            else:
                hint = near(name, self._threshold_names) or "; see `gpudiag rules show CODE`."
                raise GpudiagError(f"There is no threshold {name!r}{hint}")
        return replace(self, rules=tuple(rules[rule.code] for rule in self.rules), settings=settings)

    def _present(self, values: Mapping[str, float]) -> dict[str, float]:
        """Thresholds by their present names; warns of a former one."""
        present: dict[str, float] = {}
        codes = {rule.id: rule.code for rule in self.rules}
        for name, value in values.items():
            owner, _, param = name.partition(".")
            by_code = f"{codes.get(owner, owner)}.{param}"
            new, factor = (name, 1.0) if name in self._threshold_names else self.former.setting(by_code)
            if new not in (name, by_code) and new in self._threshold_names:
                warnings.warn(f"--set {name}: is now called {new}.", former_names.FormerNameWarning, stacklevel=3)
            known = new in self._threshold_names
            present[new if known else name] = value * factor if known else value
        return present

    @property
    def _threshold_names(self) -> list[str]:
        own = [f"settings.{name}" for name in self.settings]
        return own + [f"{rule.code}.{name}" for rule in self.rules for name in rule.params]


def _with_value(param: Param, name: str, value: float) -> Param:
    """The threshold with another value. Raises GpudiagError where that is outside what its unit allows."""
    low, high = _RANGES.get(param.unit, (-math.inf, math.inf))
    if not low <= value <= high:
        range_ = f"{low:g} or more" if math.isinf(high) else f"{low:g} to {high:g}"
        raise GpudiagError(f"{name}={value:g} makes no sense: give {range_}.")
    return param.model_copy(update={"value": float(value)})


CREATES = re.compile(r"^[ \t]*create\s+(?:or\s+replace\s+)?(?:view|macro)\s+\"?(\w+)", re.I | re.M)
