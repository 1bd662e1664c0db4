"""The declaration of an edit: its effect in the replay, and the most that it can save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpudiag.model.vocabulary import Also
from gpudiag.replay.collectives import Rendezvous
from gpudiag.replay.edited_graph import EditedGraph, EditTargets

# Conditions on `idle_interval p`, for the table `wanted` of selected call ids: the idle time that an edit can remove.
IDLE_IN_CALL = "p.doing = 'call' and p.api_call in (select id from wanted)"
IDLE_AFTER = "p.cause_call in (select id from wanted)"
IDLE_LAUNCHING = "p.category = 'idle_launch' and p.api_call in (select id from wanted)"
IDLE_BEFORE = "p.doing = 'segment' and p.api_call in (select id from wanted)"


CopyBound = Literal["all", "but_bytes", "but_engines"]


@dataclass(frozen=True, slots=True)
class EditSpec:
    """An edit that rules can name in `price`. A module of this package declares it as a constant.

    name: what rules call it.
    meaning: one line for authors of rules, in the rule format's reference.
    apply: changes a edited; an empty selection changes nothing.
    across_ranks: changes the graphs of all ranks together; `shared` where work is moved between them, not removed.
    idle_bound: conditions that select the idle time which it can remove at most; any of them.
    copy_bound: what it can remove of exposed copies: all, all but the time their bytes need, or all but what keeps the
        busiest engine occupied; None where it leaves copies alone.
    whole_block: whether a block that only reads the selected values back goes with them.
    rewrites_kernel: whether it changes how long kernels run, by the row's `recoverable`.
    moves_kernels: whether kernels may run beside others that they followed.
    changes_kernels: whether it changes what kernels do, not when they run or what runs between them.
    in_graph: whether kernels run as nodes of a graph, in less time than each one launched by itself.
    before_call: whether it takes away what the host does before a call, so that this is where to look in the code.
    priced: whether a replay can tell its gain.
    also: what else it shortens, where that is more than the time that the finding's rows show.
    """

    name: str
    meaning: str
    apply: Callable[[EditedGraph, EditTargets], None]
    across_ranks: Callable[[Sequence[EditedGraph], Rendezvous, bool], None] | None = None
    idle_bound: tuple[str, ...] = ()
    copy_bound: CopyBound | None = None
    whole_block: bool = False
    rewrites_kernel: bool = False
    moves_kernels: bool = False
    changes_kernels: bool = False
    in_graph: bool = False
    before_call: bool = False
    priced: bool = True
    also: Also | None = None
