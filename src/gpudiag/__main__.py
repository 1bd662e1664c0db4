"""`python -m gpudiag`, and the `gpudiag` command."""

from __future__ import annotations

import os
import signal
import sys

STOPPED = (129, 130, 143)
"""Exit codes after a signal."""


def run() -> None:
    """Run the command line in a process of its own."""
    # Until the command takes signals itself, Ctrl-C ends it as the system does, without a traceback of half an import.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gpudiag.cli import main

    try:
        main(prog_name="gpudiag")
    except SystemExit as end:
        if end.code in STOPPED:  # the interpreter would wait for queries that still run
            if workfolder := sys.modules.get("gpudiag.tempdir"):
                workfolder.remove_all()
            os._exit(end.code)
        raise


if __name__ == "__main__":
    run()
