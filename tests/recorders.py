"""Stand-ins for what records programs: a shell script in place of `nsys`, and a package in place of PyTorch.

The options that the script lists are those of Nsight Systems 2023.4. What it exports is a made-up database; what the
package's profiler writes is a synthetic trace.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gpudiag.capture.plan import Plan
from torch_traces import Event, document, event, launched

OPTIONS = (
    "-c, --capture-range=", "--capture-range-end=", "--cpuctxsw=", "--cuda-graph-trace=", "-d, --duration=",
    "-e, --env-var=", "-f, --force-overwrite=", "--kill=", "-o, --output=", "--python-sampling=",
    "--python-sampling-frequency=", "-s, --sample=", "-x, --stop-on-exit=", "-t, --trace=", "-y, --delay=",
)  # fmt: skip
NSYS = """#!/bin/sh
case "$1 $2" in
  "--version "*) echo "NVIDIA Nsight Systems version 2023.4.4.54-1"; exit 0;;
  "profile --help") printf '%s\\n' $HELP; exit 0;;
  "export --help") printf '\\t--include-json=\\n'; exit 0;;
esac
for word in "$@"; do case "$word" in --output=*) name="${word#--output=}";; esac; done
if [ "$1" = export ]; then printf '%s\\n' "$*" >> LOG; cp EXPORTED "$name"; exit 0; fi
printf '%s\\n' "$*" >> LOG
shift
while [ "${1#-}" != "$1" ]; do shift; done
"""
RECORDS = '"$@"\ncode=$?\n[ $code -lt 128 ] && echo made-up > "$name.nsys-rep"\nexit $code\n'
MARK = f"98765.{os.getpid():07}"
"""Seconds that stand for ever, by which a process of these tests is found, and none of tests that run beside them."""


def exported(path: Path, *, gpu_work: bool = True, says: Sequence[str] = ()) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.execute("insert into StringIds values (1, 'HOME=/home/alice' || char(0) || 'A=b')")
        db.execute("create table DIAGNOSTIC_EVENT (text TEXT)")
        db.execute("insert into DIAGNOSTIC_EVENT values ('No CUDA events collected. Does the process use CUDA?')")
        db.executemany("insert into DIAGNOSTIC_EVENT values (?)", [(text,) for text in says])
        if gpu_work:
            db.execute("create table CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
            db.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (1)")
        db.commit()
    return path


def nsys(place: Path, body: str, options: tuple[str, ...] = OPTIONS) -> None:
    script = NSYS.replace("$HELP", shlex.join(f"\t{option}" for option in options))
    file = place / "bin" / "nsys"
    file.write_text(script.replace("LOG", str(place / "log")).replace("EXPORTED", str(place / "exported")) + body)
    file.chmod(0o755)


def plan(place: Path, *command: str) -> Plan:
    return Plan(command, place / "out", limit_s=20.0)


def assert_nothing_left(place: Path) -> None:
    assert list((place / "tmp").iterdir()) == []
    assert not (place / "out").exists()
    assert subprocess.run(["pgrep", "-f", MARK], capture_output=True, check=False).stdout == b""


def commands(place: Path) -> list[str]:
    return (place / "log").read_text().splitlines()


TORCH = {
    "torch/__init__.py": (
        "from torch import optim\nclass cuda:\n    is_initialized = staticmethod(lambda: True)\n"
        "    captured = False\n"
        "    is_current_stream_capturing = staticmethod(lambda: cuda.captured)\n"
        "    def synchronize():\n        assert not cuda.captured\n"
    ),
    "torch/optim/__init__.py": "from torch.optim.optimizer import Optimizer\n",
    "torch/optim/optimizer.py": (
        "hooks = []\nregister_optimizer_step_post_hook = hooks.append\n"
        "class Optimizer:\n    def step(self):\n        for hook in hooks: hook(self, (), {})\n"
    ),
    "torch/profiler.py": (
        "import os, pathlib, shutil, torch\nclass ProfilerActivity:\n    CPU, CUDA = 'CPU', 'CUDA'\n"
        "made = []\n"
        "class profile:\n    def __init__(self, **options):\n        assert options['with_stack']\n"
        "    def start(self):\n        if 'NO_CUPTI' in os.environ: raise RuntimeError('CUPTI is\\nbusy.')\n"
        "    def stop(self): pass\n"
        "    def export_chrome_trace(self, path):\n"
        "        pathlib.Path(os.environ['MARKS']).write_text(' '.join(made))\n"
        "        shutil.copy(os.environ['TRACE'], path)\n"
        "class record_function:\n    def __init__(self, name): made.append(name)\n"
        "    def __enter__(self): pass\n    def __exit__(self, *_): pass\n"
    ),
    "train.py": (
        "import time, torch\nmine, other = torch.optim.Optimizer(), torch.optim.Optimizer()\n"
        "torch.cuda.captured = True\nfor _ in range(9): mine.step()\ntorch.cuda.captured = False\n"
        "while True:\n    time.sleep(0.02)\n    mine.step(); other.step()\n"
    ),
    "serve.py": (
        "import threading, time, torch\nworker = threading.Thread(target=time.sleep, args=(8,))\n"
        "worker.start()\nworker.join()\n"
    ),
    "infer.py": "import time, torch\nfor _ in range(400): time.sleep(0.02)\n",
    "sitecustomize.py": "import pathlib\npathlib.Path(__file__).with_name('seen').touch()\n",
}


def torch(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the package that stands for PyTorch, and programs that use it, on the PYTHONPATH; return that folder."""
    for name, text in TORCH.items():
        file = place / "lib" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(place / "lib"))
    monkeypatch.setenv("TRACE", str(place / "trace.json.gz"))
    monkeypatch.setenv("MARKS", str(place / "marks"))
    traced(place, launched(12))
    return place / "lib"


def traced(place: Path, events: list[Event]) -> None:
    """Write what the profiler of the package will give: these events, and a place in a home folder."""
    home = event("python_function", "/home/alice/train.py(3): step", 0, 9)
    text = json.dumps(document([*events, home], host_name="alices-machine"), indent=1)
    (place / "trace.json.gz").write_bytes(gzip.compress(text.encode()))


def until(done: Callable[[], bool]) -> None:
    """Wait for something that comes, however slow the machine is."""
    latest = time.monotonic() + 60
    while not done():
        assert time.monotonic() < latest
        time.sleep(0.02)
