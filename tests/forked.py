"""A `gpudiag` for scripts that start it many times: each start is a fork of one process that has loaded everything.

The arguments, the environment, the folder and the standard streams are those of the script, which waits for the exit
code. Only the interpreter's start is spared: tests of the command line have that.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paths import ROOT

_CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    asked = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(server, [b"!"], [0, 1, 2])
    server.sendall(asked)
    server.shutdown(socket.SHUT_WR)
    code = server.recv(1)
sys.exit(code[0] if code else "the process that gpudiag is forked from has ended")
"""
_HEAVY = (
    "duckdb", "adbc_driver_sqlite", "gpudiag.cli", "gpudiag.prepare", "gpudiag.diagnosis.rank",
    "gpudiag.replay.compiled", "gpudiag.report.formats", "gpudiag.report.saved",
)  # fmt: skip
"""Not polars, which starts threads: a fork would be without them."""


@contextmanager
def command() -> Iterator[str]:
    """Give the path of a `gpudiag` that runs this checkout until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        address, script = Path(folder, "socket"), Path(folder, "gpudiag")
        client = shlex.join([sys.executable, "-IS", "-c", _CLIENT, str(address)])
        script.write_text(f'#!/bin/sh\nexec {client} "$@"\n', "utf-8")
        script.chmod(0o755)
        paths = os.pathsep.join(str(ROOT / name) for name in ("src", "tests"))
        env = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}  # numpy starts a thread a core
        with subprocess.Popen(
            [sys.executable, "-m", "forked", str(address)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as server:
            try:
                assert server.stdout and server.stdout.readline() == b"ready\n"
                yield str(script)
            finally:
                server.kill()


def serve(address: str) -> None:
    """Fork for each client."""
    for module in _HEAVY:
        importlib.import_module(module)
    from gpudiag.library import load

    load.load()
    threads = Path("/proc/self/task")
    assert not threads.exists() or len(list(threads.iterdir())) == 1

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        os.write(1, b"ready\n")
        waiting: set[int] = set()
        while True:
            client, _ = listening.accept()
            waiting -= {pid for pid in waiting if os.waitpid(pid, os.WNOHANG)[0]}
            pid = os.fork()
            if not pid:
                listening.close()
                _answer(client)
                os._exit(0)
            waiting.add(pid)
            client.close()


def _answer(client: socket.socket) -> None:
    """Run gpudiag as the client asks, and send it the exit code."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as file:
        arguments, environ, folder = json.load(file)
    pid = os.fork()
    if not pid:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = ["gpudiag", *arguments]
        _run()
    for stream in streams:
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    client.sendall(bytes([code if code >= 0 else 128 - code]))


def _run() -> None:
    from gpudiag.__main__ import run

    try:
        run()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else end.code is not None)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
