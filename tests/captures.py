"""The labelled captures: what each program is expected to show, and a report of each."""

from evaluation import corpus
from evaluation.kept_reports import report_of

__all__ = ["labelled", "report_of"]


def labelled(role: str) -> list[corpus.Case]:
    """Every captured variant with that role (slow, fixed, healthy)."""
    return [
        case
        for case in corpus.cases()
        if case.role == role and case.taken and case.suffix in ("", "/kernels" if role == "healthy" else "")
    ]
