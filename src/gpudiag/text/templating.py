"""Sentences of rules: a small, sandboxed part of Jinja, and how numbers and traced names are written.

A template sees `places` (rows, worst first; it can count all of them but reach only the first), `total` (sums of their
numbers), `params`, `loop`, and `per`: what a mean is the mean of, "an iteration", or of what where nothing repeats. It
can neither call nor compute anything of unbounded size, nor filter for long, so an untrusted rule may be rendered in
this process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined, meta, nodes
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gpudiag.model import Row, Rule
from gpudiag.text.format import byte_size, code, dur, num, often, pct, plural, times
from gpudiag.text.template_rows import MAX_COLUMNS, Fields, Many, Traced, totals

NAMES = frozenset({"places", "total", "params", "loop", "per"})
MAX_TEMPLATE = 4_000  # characters of a template, and
MAX_DEPTH = 30  # of what is inside one another, a filter of a filter too: compiling takes the third power of it
MAX_TEXT = 10_000  # of what it writes: ten times the longest of ours
MAX_WORK = 10_000  # entries that its filters may go through: a list in a list in a loop is soon a million


class TemplateProblem(Exception):
    """A template that cannot be used, in words for its author."""


def _round(value: float, precision: int = 0, method: str = "common") -> float:
    """As Jinja's, but for its `10 ** precision`, which can be made to take forever."""
    if not 0 <= precision <= 15 or method not in ("common", "ceil", "floor"):
        raise TemplateError("round takes a precision of 0 to 15, and common, ceil or floor")
    size = 10.0**precision
    return round(value, precision) if method == "common" else getattr(math, method)(value * size) / size


def _join(values: Iterable[Any], separator: str = "") -> str:
    return str(separator).join(str(_finalize(value)) for value in values)


FILTERS: dict[str, Any] = {
    "dur": dur, "bytes": byte_size, "pct": pct, "num": num, "plural": plural, "code": code, "join": _join,
    "round": _round, "often": often, "times": times,
}  # fmt: skip
# Jinja's own that cannot be made to allocate or loop without bound.
_BUILT_IN = frozenset(
    {"abs", "default", "first", "int", "last", "length", "list", "map", "max", "min", "reject", "rejectattr",
     "select", "selectattr", "sort", "sum", "unique"}
)  # fmt: skip
_JINJA_S_OWN = frozenset({"self", "super", "caller"})  # known in every template
_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem,
    nodes.Filter, nodes.Test, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.If,
    nodes.For, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.Neg, nodes.Slice, nodes.Keyword,
)  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    """Arithmetic on numbers only (`'x' * 10**9`!), and a dot that sees keys and never what Python objects can do."""

    intercepted_binops = frozenset({"+", "-", "*", "/"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise TemplateError(f"`{operator}` works on numbers only")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext | Undefined):
            return super().getattr(obj, attribute)
        return self.getitem(obj, attribute) if isinstance(obj, Mapping) else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, LoopContext | Undefined):
            return super().getitem(obj, argument)
        try:
            return obj[argument]
        except (TypeError, LookupError):
            hint = f"there is no {argument!r} in this row" if isinstance(obj, Fields) else None
            return self.undefined(hint, obj, argument)


def _finalize(value: Any) -> Any:
    if value is None:
        return "unknown"
    if isinstance(value, list | tuple | Many):
        return _join(value, ", ")
    if isinstance(value, Mapping):
        raise TemplateError("a row cannot be printed; name one of its columns")
    return code(value) if isinstance(value, Traced) else value


_work: ContextVar[list[int]] = ContextVar("entries that the filters of the template being written may yet go through")


def _counted(function: Any) -> Any:
    """A filter that stops the template when all of them together have had too much to do."""
    place = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def filtered(*args: Any, **options: Any) -> Any:
        left, value = _work.get(), args[place]
        left[0] -= 1 + (0 if isinstance(value, str) or not isinstance(value, Sized) else min(len(value), MAX_COLUMNS))
        if left[0] < 0:
            raise TemplateError(f"its filters go through more than {MAX_WORK:,} entries")
        return function(*args, **options)

    return filtered


def _environment() -> _Environment:
    env = _Environment(undefined=StrictUndefined, autoescape=False, finalize=_finalize)
    builtin = {name: env.filters[name] for name in _BUILT_IN}
    env.filters = {name: _counted(function) for name, function in (builtin | FILTERS).items()}
    env.globals = {}
    return env


_ENV = _environment()


@lru_cache(maxsize=512)
def compile_template(text: str) -> Template:
    """A template of a rule. Raises TemplateProblem when it uses more than rules may."""
    if len(text) > MAX_TEMPLATE:
        raise TemplateProblem(f"has {len(text)} characters, more than {MAX_TEMPLATE}")
    try:
        tree = _ENV.parse(text)
        if _depth(tree) > MAX_DEPTH:
            raise TemplateProblem(f"is nested more than {MAX_DEPTH} levels deep")
        for node in tree.find_all(nodes.Node):
            if not isinstance(node, _ALLOWED):
                raise TemplateProblem(f"uses {type(node).__name__.lower()}, which messages may not")
            if isinstance(node, nodes.For) and any(True for _ in node.find_all(nodes.For)):
                raise TemplateProblem("nests one loop in another")
        unknown = meta.find_undeclared_variables(tree) - NAMES
        unknown |= {node.name for node in tree.find_all(nodes.Name)} & _JINJA_S_OWN
        if unknown:
            raise TemplateProblem(f"names {', '.join(sorted(unknown))}; only {', '.join(sorted(NAMES))} exist")
        return _ENV.from_string(text)
    except TemplateError as error:
        raise TemplateProblem(str(error)) from None
    except (RecursionError, SyntaxError, MemoryError, ValueError, ArithmeticError):
        raise TemplateProblem("is nested too deeply, or holds a number too large") from None


def parse(text: str) -> nodes.Template:
    """The syntax tree of a rule's template. Raises TemplateProblem as `compile_template` does."""
    compile_template(text)
    return _ENV.parse(text)


def compile_tree(tree: nodes.Template) -> Template:
    """A template made of a tree's parts."""
    tree.set_environment(_ENV)
    return _ENV.from_string(tree)


def _depth(tree: nodes.Node) -> int:
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in node.iter_child_nodes()]
    return depth


# What a filter or an operator raises when it is given what it is not made for.
_FAILURES = (TemplateError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RecursionError)


def render(text: str, rule: Rule, rows: Sequence[Row], loop: Mapping[str, Any] | None = None) -> str:
    """`text` (a rule's title or message) for these rows. Raises TemplateProblem."""
    return write(compile_template(text), rule, rows, loop)


def write(template: Template, rule: Rule, rows: Sequence[Row], loop: Mapping[str, Any] | None = None) -> str:
    """Fill in a compiled template for these rows. Raises TemplateProblem."""
    params = {name: param.value for name, param in rule.params.items()}
    source = (loop or {}).get("period_source") or (loop or {}).get("source")  # of the table, and of the report
    per = "in the recorded work" if source == "unknown" else "an iteration"
    names = {"places": Many(rows), "total": totals(rows), "params": params, "loop": Fields(loop or {}), "per": per}
    parts: list[str] = []
    size = 0
    _work.set([MAX_WORK])
    try:
        for part in template.generate(**names):
            parts.append(part)
            size += len(part)
            if size > MAX_TEXT:
                raise TemplateProblem(f"writes more than {MAX_TEXT} characters")
        return "".join(parts).strip()
    except _FAILURES as error:
        raise TemplateProblem(str(error)) from None
