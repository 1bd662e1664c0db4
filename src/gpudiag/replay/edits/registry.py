"""The edits that the modules of this package declare."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from gpudiag.replay import edits
from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits.edit_spec import EditSpec


@cache
def known() -> Mapping[str, EditSpec]:
    """Every edit by its name, in the order of names."""
    modules = [import_module(f"{edits.__name__}.{module.name}") for module in pkgutil.iter_modules(edits.__path__)]
    specs = [value for module in modules for value in vars(module).values() if isinstance(value, EditSpec)]
    return {spec.name: spec for spec in sorted(specs, key=lambda spec: spec.name)}


def of(names: Iterable[str]) -> tuple[EditSpec, ...]:
    """The edits of these names, which the library has checked; KeyError for any other."""
    return tuple(known()[name] for name in names)


def apply(edited: EditedGraph, names: Iterable[str], chosen: EditTargets) -> None:
    """Change the graph as the fix would; an empty selection changes nothing."""
    for edit in of(names):
        edit.apply(edited, chosen)


def rewrites(names: Iterable[str]) -> bool:
    """Return whether one of the edits changes how long kernels run."""
    return any(edit.rewrites_kernel for edit in of(names))


def moves(names: Iterable[str]) -> bool:
    """Return whether with one of the edits kernels may run beside others that they followed."""
    return any(edit.moves_kernels for edit in of(names))
