"""Make a large trace out of a small real one:  python -m benchmarks.enlarge_trace TRACE OUT --mb 255

The events of a torch.profiler trace are repeated, each time later and with fresh numbers of calls and functions, until
the file has the size asked for. What it states of itself is left as it was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]
NUMBERS = ("correlation", "External id", "Python id", "Python parent id", "Ev Idx")
PAUSE_US = 50


def read(path: Path) -> dict[str, Any]:
    """A trace, packed or not."""
    content = path.read_bytes()
    if path.suffix in (".xz", ".gz"):
        content = (lzma if path.suffix == ".xz" else gzip).decompress(content)
    found: dict[str, Any] = json.loads(content)
    return found


def repeated(events: list[Event]) -> Iterator[Event]:
    """The events again and again, each time after the last of the time before."""
    timed = [event for event in events if event.get("ph") == "X" and event["cat"] != "Trace"]
    span = max(event["ts"] + event["dur"] for event in timed) - min(event["ts"] for event in timed) + PAUSE_US
    numbers = (event["args"].get(key) or 0 for event in timed if "args" in event for key in NUMBERS)
    fresh = 1 + max(numbers)
    steps = sum(event["cat"] == "user_annotation" and event["name"].startswith("ProfilerStep#") for event in timed)
    yield from (event for event in events if event.get("ph") == "M")
    time = 0
    while True:
        for event in timed:
            args = dict(event.get("args", {}))
            args |= {key: args[key] + time * fresh for key in NUMBERS if args.get(key) is not None}
            name = event["name"]
            if name.startswith("ProfilerStep#"):
                name = f"ProfilerStep#{int(name.partition('#')[2]) + time * steps}"
            yield {**event, "name": name, "ts": round(event["ts"] + time * span, 3), "args": args}
        time += 1


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=int, default=255)
    given = parser.parse_args()
    trace = read(given.trace)
    stated = {key: value for key, value in trace.items() if key != "traceEvents"}
    with given.out.open("w") as out:
        out.write(json.dumps(stated)[:-1] + ', "traceEvents": [')
        for number, event in enumerate(repeated(trace["traceEvents"])):
            out.write(f"{',' if number else ''}\n{json.dumps(event, indent=1)}")
            if out.tell() > given.mb * 1_000_000:
                break
        out.write("\n]}\n")


if __name__ == "__main__":
    main()
