"""The labelled captures: what each program is expected to show, and a report of each."""

from pathlib import Path

from evaluation import corpus, packed
from evaluation.kept_reports import report_of

__all__ = ["labelled", "named", "report_of"]


def named(name: str) -> Path:
    """Return a file that gpudiag reads: one in fixtures/captures, or the timeline whose name has no ending.

    A page of Nsight Compute is named `<program>/<variant>.raw.csv`.
    """
    place = corpus.CAPTURES / name
    if name.endswith(".raw.csv"):
        return packed.opened(packed.page(place))
    return place if place.exists() else packed.recording(place)


def labelled(role: str) -> list[corpus.Case]:
    """Every captured variant with that role (slow, fixed, healthy)."""
    return [
        case
        for case in corpus.cases()
        if case.role == role and case.taken and case.suffix in ("", "/kernels" if role == "healthy" else "")
    ]
