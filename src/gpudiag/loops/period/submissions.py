"""The GPU operations of a process in the order in which the host submits them; loops are looked for in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Ints, Settings
from gpudiag.loops.tuning import launched_while_tuning

Connection = duckdb.DuckDBPyConnection
Floats = NDArray[np.float64]

COPY_BACK = "device_to_host"
UPLOAD = "host_to_device"
_TABLE = 1 << 24  # values between which differences are looked up in a table
COPIES = ("memcpy:", "memset:")
GRAPH = "graph:"
_UPDATING = "select id from name where updates_parameters(text, null) and id in (select distinct name from gpu_op)"
PRODUCTS = ("product", "convolution")
SIZED = (*PRODUCTS, "fft")  # roles of which a library has a kernel for each size


@dataclass(frozen=True)
class Submissions:
    """GPU operations of one process by the time of their launch, and the calls that hold the host between them.

    Arrays have one entry an operation, or where one call launches several, as a graph whose nodes were traced does, one
    for them all: what one call launches is never divided. `kind` counts what is the same operation of the same thread,
    `pair` the same with the operation after it. Times are ns.
    """

    start: Ints
    """When the host began the call that launched the operation."""
    waited: Ints
    """For how long before the host launched nothing."""
    done: Ints
    """When the GPU was done with it."""
    thread: Ints
    kind: Ints
    pair: Ints
    ns: Floats
    """How long the GPU took over it; 0 of a copy that hardly recurs: input and result are no work."""
    names: tuple[str, ...]
    """Full name of each kind."""
    short: tuple[str, ...]
    roles: tuple[str, ...]
    """The role of each kind's kernel, as the rules library names it; empty for none."""
    updates: tuple[bool, ...]
    """Whether each kind's kernel updates parameters, as an optimizer's does."""
    fed: Ints
    """The operations that upload more than a few numbers, ascending: what an iteration works on."""
    results: Ints
    """The operations that copy an array back, ascending: what an iteration is for, unlike the value of a test."""
    calls: dict[str, Ints]
    """Calls that wait or allocate, by thread and name → the operations that come next, ascending."""
    same_graph: NDArray[np.bool_]
    """Whether each kind is the launch of one graph, or of one after another."""

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def pairs(self) -> int:
        """Count the kinds of pairs."""
        return int(self.pair.max()) + 1 if len(self.pair) else 0

    @cached_property
    def worked(self) -> Floats:
        """The GPU time of all operations before each one, and at the end of all (ns)."""
        return np.append(0.0, np.cumsum(self.ns))

    @cached_property
    def mean_ns(self) -> Floats:
        """The mean GPU time of the operations of each kind (ns)."""
        kinds = len(self.names)
        total = np.bincount(self.kind, weights=self.ns, minlength=kinds)
        return np.asarray(total / np.maximum(np.bincount(self.kind, minlength=kinds), 1))

    @cached_property
    def copies(self) -> NDArray[np.bool_]:
        """A mask of the kinds that copy or fill memory."""
        return np.array([name.startswith(COPIES) for name in self.short], dtype=bool)

    @cached_property
    def thread_of_kind(self) -> Ints:
        """The thread that launches each kind; of those that any of a pool launches, one of them."""
        found = np.zeros(len(self.names), dtype=np.int64)
        found[self.kind] = self.thread
        return found

    def part(self, first: int, last: int) -> Submissions:
        """Return the operations from `first` up to `last`, with the calls among them."""
        fields = ("start", "waited", "done", "thread", "kind", "pair", "ns")
        arrays = {name: getattr(self, name)[first:last] for name in fields}
        calls = {name: at[(at >= first) & (at < last)] - first for name, at in self.calls.items()}
        moving = {name: getattr(self, name) for name in ("fed", "results")}
        within = {name: at[(at >= first) & (at < last)] - first for name, at in moving.items()}
        return replace(self, **arrays, **within, calls=calls)


def read(con: Connection, process: int, settings: Settings, *, by_thread: bool = True) -> Submissions:
    """The operations that a process launched; a kind is a name on a thread, or on any where not `by_thread`.

    A library picks another kernel for each size of a product, convolution or transform: where a program has many of one
    role, they count as one.
    """
    rows = con.execute(
        """
        select a.id as call, a.start, a."end" as called, o."end" as done, o."end" - o.start as ns, a.thread,
               coalesce(o.name, -1) as name, coalesce(o.graph, -1) as graph,
               enum_code(o.kind) as what, coalesce(enum_code(o.copy_kind), -1) as direction,
               case when o.copy_kind = $upload and o.bytes >= $least then o.bytes when o.copy_kind = $back then -o.bytes
               else 0 end as moved
        from gpu_op o join api_call a on a.id = o.api_call where o.process = $process
        order by a.start, a.id, o."end"
        """,
        {"process": process, "upload": UPLOAD, "back": COPY_BACK, "least": settings["loop_fed_bytes"]},
    ).fetchnumpy()
    own = ~launched_while_tuning(con, rows["thread"], rows["start"])
    call, start, called, done, thread, name, what, direction, ns, moved, graph = (
        np.asarray(rows[column][own], dtype=np.int64)
        for column in ("call", "start", "called", "done", "thread", "name", "what", "direction", "ns", "moved", "graph")
    )
    updates = np.isin(name, con.execute(_UPDATING).fetchnumpy()["id"]).astype(np.int64)
    first = np.flatnonzero(np.append(True, call[1:] != call[:-1])[: len(call)])
    together = np.diff(np.append(first, len(call)))
    if len(first) < len(call):
        done, updates, moved = (np.maximum.reduceat(column, first) for column in (done, updates, moved))
        ns = np.add.reduceat(ns, first)
        kept = (start, called, thread, name, what, direction, graph)
        start, called, thread, name, what, direction, graph = (column[first] for column in kept)
    before = np.append(start[:1], np.maximum.accumulate(called)[:-1])
    user = np.where(np.isin(thread, _pool(con, process)), -1, thread) if by_thread else np.zeros_like(thread)
    kind, named = _kinds(con, user, (name, what, direction, together, updates), settings)
    pair = _numbered(kind * (len(named) + 1) + np.append(kind[1:], len(named))[: len(kind)])[1]
    often = np.bincount(kind, minlength=len(named)) >= settings["min_iterations"]
    copies = np.array([short.startswith(COPIES) for _, short, _, _ in named], dtype=bool)
    # Copies back do not count: a result or a checkpoint may take as long as all that is computed.
    counts = (often | ~copies) & np.array([COPY_BACK not in text for text, _, _, _ in named], dtype=bool)
    return Submissions(
        start,
        np.maximum(0, start - before),
        done,
        thread,
        kind,
        pair,
        np.where(counts[kind], ns, 0).astype(np.float64),
        tuple(text for text, _, _, _ in named),
        tuple(short for _, short, _, _ in named),
        tuple(role for _, _, role, _ in named),
        tuple(updates for _, _, _, updates in named),
        *_arrays(moved, kind, copies, settings),
        _calls(con, process, start, thread),
        np.array(
            [row[1] == GRAPH and _of_one_graph(graph[kind == at], settings) for at, row in enumerate(named)], dtype=bool
        ),
    )


def _of_one_graph(graphs: Ints, settings: Settings) -> bool:
    """Return whether nearly all launches are of one graph, or of one after another, as where one is recorded anew.

    graphs: the id of each launch, -1 for none.
    """
    ids, times = np.unique(graphs[graphs >= 0], return_counts=True)
    often = graphs[np.isin(graphs, ids[times >= settings["loop_often"]])]
    alternate = np.count_nonzero(np.diff(often)) >= len(np.unique(often))
    most = times.max(initial=0) if alternate else len(often)
    return bool(0 < most >= settings["loop_alike_share"] * len(graphs))


def _arrays(moved: Ints, kind: Ints, copies: NDArray[np.bool_], settings: Settings) -> tuple[Ints, Ints]:
    """The uploads that an iteration works on, and the arrays that it copies back: without the arguments of a kernel, as
    Numba copies host arrays.

    Such an array comes back, as large as it was, right after the kernel. Where nearly all kernels are given arrays in
    this way, these are their input. moved: bytes that each operation uploads, less than 0 for those copied back;
    copies: of each kind whether it is one.
    """
    fed, results = np.flatnonzero(moved > 0), np.flatnonzero(-moved >= settings["loop_result_bytes"])
    places = np.flatnonzero(moved)
    kernels = np.append(0, np.cumsum(~copies[kind]))  # before each operation
    ordered = places[np.lexsort((places, np.abs(moved[places])))]  # by size, and of one size in their order
    returns = np.where(moved[ordered] < 0, np.arange(len(ordered)), len(ordered))
    following = np.minimum.accumulate(returns[::-1])[::-1]  # the next copy back
    there = (moved[ordered] > 0) & (following < len(ordered))
    uploads, later = ordered[there], ordered[following[there]]
    argument = (moved[later] == -moved[uploads]) & (kernels[later] - kernels[uploads] == 1)
    given = len(np.unique(kernels[uploads[argument]]))
    if given >= settings["loop_alike_share"] * kernels[-1]:
        return fed, results
    # A kernel may be given two arrays of one size: either copy back has an upload of that size before it.
    preceding = np.maximum.accumulate(np.where(moved[ordered] > 0, np.arange(len(ordered)), -1))
    there = (moved[ordered] < 0) & (preceding >= 0)
    returned, earlier = ordered[there], ordered[preceding[there]]
    returned = returned[(moved[earlier] == -moved[returned]) & (kernels[returned] - kernels[earlier] == 1)]
    return np.setdiff1d(fed, uploads[argument]), np.setdiff1d(results, returned)


def _pool(con: Connection, process: int) -> Ints:
    """Return the threads that only copy for the one that runs Python, as JAX's do: any takes the next copy."""
    rows = con.execute(
        """
        with doing as (
            select a.thread, bool_or(o.kind in ('kernel', 'graph')) as launches,
                   a.thread in (select y.thread from py_sample y) as runs_python
            from gpu_op o join api_call a on a.id = o.api_call where o.process = ? group by a.thread
        )
        select thread from doing
        where not launches and not runs_python and (select bool_or(launches and runs_python) from doing)
        """,
        [process],
    ).fetchnumpy()
    return np.asarray(rows["thread"], dtype=np.int64)


def _kinds(
    con: Connection, thread: Ints, parts: tuple[Ints, Ints, Ints, Ints, Ints], settings: Settings
) -> tuple[Ints, list[tuple[str, str, str, bool]]]:
    """The kind of each operation, those of crowded roles joined; of each kind its full and its short name, its role and
    whether it updates parameters.

    parts: the name of each operation, what it is and in which direction it copies, as numbers, -1 for none; with how
    many its call launches, and whether any of these updates parameters.
    """
    number = _numbered(thread)[1]
    key = number
    for column in parts:
        values, numbers = _numbered(column)
        key = key * len(values) + numbers
    _, kind = _numbered(key)
    place = np.zeros(int(kind.max(initial=-1)) + 1, dtype=np.int64)
    place[kind[::-1]] = np.arange(len(kind))[::-1]  # the first operation of each kind
    known = {
        id_: (text, short, role)
        for id_, text, short, role in con.execute(
            "select id, text, short, coalesce(kernel_role(text)::varchar, '') from name where id in (select unnest(?))",
            [_numbered(parts[0])[0].tolist()],
        ).fetchall()
    }
    labels = con.execute("select enum_range(any_value(kind)), enum_range(any_value(copy_kind)) from gpu_op").fetchall()[
        0
    ]
    rows = []
    for at in place:
        name, what, direction, together, updates = (int(column[at]) for column in parts)
        copied = f"{labels[0][what]}:{labels[1][direction] if direction >= 0 else ''}"
        rows.append(((int(number[at]), together), *known.get(name, (copied, copied, "")), bool(updates)))
    names = {role: {row[1] for row in rows if row[3] == role} for role in SIZED}
    crowded = {role for role in SIZED if len(names[role]) > settings["loop_kernels_a_role"]}
    joined: dict[tuple[tuple[int, int], str], int] = {}
    named: list[tuple[str, str, str, bool]] = []
    to = np.zeros(max(1, len(rows)), dtype=np.int64)
    for old, (of_call, text, short, role, updates) in enumerate(rows):
        own = (of_call, role if role in crowded else text)
        if own not in joined:
            joined[own] = len(named)
            named.append((own[1], short, role, updates))
        to[old] = joined[own]
    return to[kind], named


def _numbered(values: Ints) -> tuple[Ints, Ints]:
    """The different values, ascending, and the position of each value among them; without sorting where it can be."""
    low = int(values.min(initial=0))
    span = int(values.max(initial=0)) - low + 1
    if span > _TABLE:
        return np.unique(values, return_inverse=True)
    there = np.zeros(span, dtype=bool)
    there[values - low] = True
    different = np.flatnonzero(there)
    return different + low, (np.cumsum(there) - 1)[values - low]


def _calls(con: Connection, process: int, start: Ints, thread: Ints) -> dict[str, Ints]:
    """Calls that may begin an iteration, of threads that submit work: others, as those of a pool that writes results,
    wait for it once in a few iterations. Where memory is freed says nothing: Python does so when it drops the array.
    """
    rows = con.execute(
        """
        select a.thread || ' ' || n.text as name, list(a.start order by a.start) as starts
        from api_call a join name n on n.id = a.name
        where a.process = ? and a.parent is null and api_kind(n.text) in ('sync', 'alloc')
          and a.thread in (select unnest(?))
        group by 1 order by 1
        """,
        [process, _numbered(thread)[0].tolist()],
    ).fetchall()
    found = {}
    for name, starts in rows:
        following = np.unique(np.searchsorted(start, np.array(starts, dtype=np.int64)))
        found[name] = following[following < len(start)]
    return found
