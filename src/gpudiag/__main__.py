"""`python -m gpudiag`, and the `gpudiag` command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence

STOPPED = (129, 130, 143)
"""Exit codes after a signal."""
_RECORDING = frozenset({"capture", "record"})
"""Commands that start programs of the user's."""
_OBJECTS = 50_000
"""New objects after which Python looks for garbage; parsing rules and reports makes many, and hardly any garbage."""


def run() -> None:
    """Run the command line in a process of its own."""
    # Until the command takes signals itself, Ctrl-C ends it as the system does, without a traceback of half an import.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _spend_less(sys.argv[1:])
    from gpudiag.cli import main

    try:
        main(prog_name="gpudiag")
    except SystemExit as end:
        if end.code in STOPPED:  # the interpreter would wait for queries that still run
            if workfolder := sys.modules.get("gpudiag.tempdir"):
                workfolder.remove_all()
            os._exit(end.code)
        raise


def _spend_less(words: Sequence[str]) -> None:
    """Settle what only pays in programs that run for long; a tenth of the time of explaining a small file goes there.

    words: the arguments of the command line.
    """
    gc.set_threshold(_OBJECTS)
    # Nothing here does linear algebra, for which numpy starts a thread a core, and those wait at full speed.
    # The programs that are recorded inherit our environment, and do.
    if _RECORDING.isdisjoint(words):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


if __name__ == "__main__":
    run()
