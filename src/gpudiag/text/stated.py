"""The columns that a rule's sentence prints, read off its template and never off the text that it writes.

A template is reduced to its conditions and the columns printed under them: what that writes for the same rows are the
names of the columns that the sentence states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Template, nodes

from gpudiag.model import Row, Rule
from gpudiag.text.templating import compile_tree, parse, write

_NO_ROWS = ("params", "loop", "per")
_PRINT_ATTRIBUTE = ("map", "sum")  # filters whose `attribute` is printed; others select or sort by it
_Sources = Mapping[str, frozenset[str]]  # variable of a loop → the columns that it goes through


def stated(text: str, rule: Rule, rows: Sequence[Row], loop: Mapping[str, Any] | None = None) -> frozenset[str]:
    """The columns that a rule's template prints for these rows; `places` where it prints their number."""
    return frozenset(write(_reduced(text), rule, rows, loop).split())


@lru_cache(maxsize=512)
def summed(text: str) -> frozenset[str]:
    """The columns of which a template prints the sum over all places."""
    found = parse(text).find_all(nodes.Getattr)
    return frozenset(one.attr for one in found if isinstance(one.node, nodes.Name) and one.node.name == "total")


@lru_cache(maxsize=512)
def choosing(text: str) -> frozenset[str]:
    """The columns on which the words of a template depend: a boolean among them needs no further words."""
    tree = parse(text)
    tests = [one.test for one in tree.find_all(nodes.If)] + [one.test for one in tree.find_all(nodes.CondExpr)]
    return frozenset(column for test in tests for column in _columns(test, {}))


@lru_cache(maxsize=512)
def _reduced(text: str) -> Template:
    """The template that prints the names of columns where the given one prints their values."""
    tree = parse(text)
    return compile_tree(nodes.Template(_block(tree.body, {}), lineno=1))


def _block(body: Sequence[nodes.Node], sources: _Sources) -> list[nodes.Node]:
    return [made for node in body if (made := _statement(node, sources)) is not None]


def _statement(node: nodes.Node, sources: _Sources) -> nodes.Node | None:
    if isinstance(node, nodes.Output):
        return nodes.Output([part for value in node.nodes for part in _names(value, sources)], lineno=1)
    if isinstance(node, nodes.If):
        elifs = [nodes.If(one.test, _block(one.body, sources), [], [], lineno=1) for one in node.elif_]
        return nodes.If(node.test, _block(node.body, sources), elifs, _block(node.else_, sources), lineno=1)
    if isinstance(node, nodes.For):
        inner = {**sources, _name_of(node.target): frozenset(_columns(node.iter, sources)) - {"places"}}
        body, empty = _block(node.body, inner), _block(node.else_, sources)
        return nodes.For(node.target, node.iter, body, empty, node.test, node.recursive, lineno=1)
    return None


def _names(value: nodes.Expr, sources: _Sources) -> list[nodes.Expr]:
    """Nodes to print in an expression's place: its columns, each part of a choice under its condition."""
    columns = " ".join(sorted(_columns(value, sources)))
    return [nodes.TemplateData(f" {columns} "), *(_choice(one, sources) for one in _choices(value))]


def _choice(choice: nodes.CondExpr, sources: _Sources) -> nodes.Expr:
    return nodes.CondExpr(choice.test, _joined(choice.expr1, sources), _joined(choice.expr2, sources))


def _joined(value: nodes.Expr | None, sources: _Sources) -> nodes.Expr:
    return nodes.Concat(_names(value, sources)) if value is not None else nodes.Const("")


def _choices(value: nodes.Node) -> Iterator[nodes.CondExpr]:
    """The outermost choices in an expression."""
    if isinstance(value, nodes.CondExpr):
        yield value
        return
    for child in value.iter_child_nodes():
        yield from _choices(child)


def _columns(value: nodes.Node, sources: _Sources) -> Iterator[str]:
    """The columns that an expression reads outside of choices."""
    if isinstance(value, nodes.CondExpr):
        return
    if isinstance(value, nodes.Getattr | nodes.Getitem):
        if isinstance(value.node, nodes.Name) and value.node.name in _NO_ROWS:
            return
        name = value.attr if isinstance(value, nodes.Getattr) else _constant(value.arg)
        if isinstance(name, str):
            yield name
    elif isinstance(value, nodes.Filter) and value.name in _PRINT_ATTRIBUTE:
        yield from (str(_constant(one.value)) for one in value.kwargs if one.key == "attribute")
    elif isinstance(value, nodes.Filter) and value.name == "length" and _name_of(value.node) == "places":
        yield "places"
    elif isinstance(value, nodes.Name):
        yield from sources.get(value.name, ())
    of_row = isinstance(value, nodes.Getattr | nodes.Getitem) and isinstance(value.node, nodes.Name)
    for child in () if of_row else value.iter_child_nodes():
        yield from _columns(child, sources)


def _name_of(value: nodes.Node | None) -> str:
    return value.name if isinstance(value, nodes.Name) else ""


def _constant(value: nodes.Node) -> Any:
    return value.value if isinstance(value, nodes.Const) else None
