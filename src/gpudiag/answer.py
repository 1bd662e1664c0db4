"""Answer to a question about captures: the report, and what a page draws of them. An earlier run's is used again where
the same was asked of the same files (`cache.memo`); its text is the same byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpudiag.errors import GpudiagError
from gpudiag.model import Report
from gpudiag.options import Options

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from gpudiag.cache import Memo
    from gpudiag.timeline.model import Picture

REPORT, PICTURE = "report", "picture"
"""Parts of a memo. A picture is there once somebody has asked for a page."""


class Explained(NamedTuple):
    """A report, its picture where one was asked for, and whether every rule could be judged."""

    report: Report
    picture: Picture | None = None
    sure: bool = True


def answered(paths: Sequence[Path], options: Options, make: Callable[[], Explained], *, drawn: bool) -> Explained:
    """The answer that an earlier run kept, or else the one that `make` gives, which is kept. Raises what that raises.

    drawn: whether the picture is asked for, too.
    """
    memo = _memo(paths, options)
    if memo and (kept := _kept(memo, drawn)):
        options.progress(f"reading the report of {', '.join(path.name for path in memo.paths)} from the cache")
        return kept
    made = make()
    if memo and _same_next_time(made, options):
        _keep(memo, made, options)
    return made


def _memo(paths: Sequence[Path], options: Options) -> Memo | None:
    """Return the answer's place in the cache; None where it has none."""
    if not options.cached:
        return None
    from gpudiag import cache
    from gpudiag.ingest.folder import expanded

    try:
        return cache.memo(expanded(paths), options)
    except cache.Unkept as reason:
        options.progress(f"no report is looked for in the cache: {reason}")
    except GpudiagError:  # whoever reads the captures says so
        pass
    return None


def _kept(memo: Memo, drawn: bool) -> Explained | None:
    parts = memo.read(REPORT, PICTURE) if drawn else memo.read(REPORT)
    if parts is None:
        return None
    try:
        report = Report.model_validate_json(parts[0])
        return Explained(report, _pictures().validate_json(parts[1]) if drawn else None)
    except ValueError:  # written by nobody that we know
        memo.discard()
        return None


def _keep(memo: Memo, made: Explained, options: Options) -> None:
    from gpudiag.cache import Unkept

    try:
        memo.keep(_parts(made))
    except Unkept as reason:
        options.progress(f"this report is not kept for the next time: {reason}")


def _parts(made: Explained) -> dict[str, bytes]:
    """The answer as a memo holds it. Raises Unkept where it would not be read as precisely the same."""
    from gpudiag.cache import Unkept

    try:
        parts = {REPORT: made.report.model_dump_json().encode()}
        again: list[object] = [Report.model_validate_json(parts[REPORT])]
        if made.picture is not None:
            parts[PICTURE] = _pictures().dump_json(made.picture)
            again.append(_pictures().validate_json(parts[PICTURE]))
    except ValueError as error:  # a figure or a text that JSON does not hold
        raise Unkept("JSON cannot hold it") from error
    if repr(again) != repr([part for part in made[:2] if part is not None]):
        raise Unkept("JSON cannot hold it")
    return parts


def _same_next_time(made: Explained, options: Options) -> bool:
    """Return whether asking again could give nothing else: no rule failed, and nobody has to be warned of a name."""
    from gpudiag.diagnosis import loop_names

    names = {name for loop in made.report.run.loops for name in loop_names.known(loop)}
    return made.sure and options.iteration_times.keys() <= names | {""}


@cache
def _pictures() -> TypeAdapter[Picture]:
    from pydantic import TypeAdapter

    from gpudiag.timeline.model import Picture

    return TypeAdapter(Picture)
