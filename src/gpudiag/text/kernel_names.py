"""Short names of kernels that stand in one table: where two would read alike, what differs is shown as well."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from gpudiag.text.escape import ABI_TAG, NAME_LIMIT, middle, one_line, short_name

ROOM = 60  # for what differs
LONGEST = 2 * NAME_LIMIT
_BREAKS = "<>(), :"
# What a template of an array library applies to each element (`exp_kernel_cuda`, `MulFunctor`, `launch_clamp_scalar`),
# or what a template of a library of products is made for.
_OPERATION = re.compile(
    r"CUDAFunctor_(\w+)|([A-Za-z]\w*?)(?:_kernel(?:_cuda|_impl)?\(|_kernel_impl<|_kernel_cuda\b|_?[Ff]unctor\b|Ops?<|"
    r"CUDAKernelImpl)|\blaunch_([a-z]\w+)|(cutlass_\w+)"
)
_NO_NAME = re.compile(r"<unnamed>::|\(anonymous namespace\)::|^std::enable_if<.*?>::type |" + ABI_TAG)
_WRAPPERS = {"gpu", "Binary", "Unary", "BUnary", "AUnary", "Reduce", "vectorized_elementwise", "elementwise"}


def with_operation(name: str) -> str:
    """The base name, and the operation that a template is made for where its arguments name one: `elementwise_kernel`
    is one of hundreds, `elementwise_kernel (where)` is not.
    """
    line = _NO_NAME.sub("", one_line(name))
    base = line.partition("(")[0].partition("<")[0].split("::")[-1].split(" ")[-1]
    found = ("".join(match.groups("")) for match in _OPERATION.finditer(line[line.find(base) + len(base) :]))
    operation = next((one for one in found if one not in _WRAPPERS), "")
    base = base or short_name(line)
    return f"{base} ({operation})" if operation else base


def distinguished(names: Iterable[str]) -> dict[str, str]:
    """Name → short form, none of them twice."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        alike[short_name(one_line(name))].append(name)
    found: dict[str, str] = {}
    for short, group in alike.items():
        found |= {group[0]: short} if len(group) == 1 else _apart(short, group)
    return found


def _apart(short: str, group: Sequence[str]) -> dict[str, str]:
    """The short form and the part in which each name differs from the others."""
    lines = [one_line(name) for name in group]
    start = _common(lines)
    end = _common([line[start:][::-1] for line in lines])
    first = lines[0]
    while start and first[start - 1] not in _BREAKS:  # from the start of a word to its end
        start -= 1
    while end and first[len(first) - end] not in _BREAKS:
        end -= 1
    for _ in range(min(end, ROOM)):  # to the end of the arguments that begin in it
        if not any(_is_open(line[start : len(line) - end]) for line in lines):
            break
        end -= 1
    parts = [middle(line[start : len(line) - end], ROOM).strip() or "nothing" for line in lines]
    if len(set(parts)) < len(parts):
        parts = [f"{part}, {number}" for number, part in enumerate(parts, 1)]
    return {name: f"{short} [here: {part}]" for name, part in zip(group, parts, strict=True)}


def _is_open(part: str) -> bool:
    return part.count("<") > part.count(">")


def _common(lines: Sequence[str]) -> int:
    """Return how many characters all of them start with."""
    columns = zip(*lines, strict=False)
    return next((at for at, column in enumerate(columns) if len(set(column)) > 1), min(map(len, lines)))
