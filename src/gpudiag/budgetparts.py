"""Which parts of an iteration's time budget a rule is about: what tells whether its cause is gone or only hidden."""

from __future__ import annotations

from collections.abc import Mapping

_COMPUTE = ("compute",)
_HOST = ("idle_launch", "idle_other")
# By a rule's code or, for most, by its letter. Rules of no single part of the budget (O, A04, A05, S06) have none.
ABOUT: Mapping[str, tuple[str, ...]] = {
    "A": ("idle_allocation",), "A04": (), "A05": (),
    "D": ("idle_input", "idle_other"), "D04": _HOST,
    "H": ("idle_launch",), "H02": _HOST, "H03": _COMPUTE, "H06": _HOST, "H07": _HOST, "H08": _HOST, "H10": _HOST,
    "M": ("exposed_copy",), "M01": ("exposed_copy", "idle_sync"), "M05": ("exposed_copy", "idle_launch"),
    "M08": ("idle_allocation", "idle_other"),
    "N": ("exposed_communication",),
    "S": ("idle_sync",), "S04": ("idle_sync", "idle_launch"), "S06": (),
    **dict.fromkeys("CKLPW", _COMPUTE),
}  # fmt: skip


def of(code: str) -> tuple[str, ...]:
    """The parts behind a rule's findings; none for a user's own rule."""
    return ABOUT.get(code, ABOUT.get(code.rstrip("0123456789"), ()))
