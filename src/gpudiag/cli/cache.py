"""`gpudiag cache`: what is kept of large captures, and how to be rid of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from gpudiag.cli.arguments import deliver, ended
from gpudiag.cli.sections import FAILED, Command, Group

if TYPE_CHECKING:
    from gpudiag.cache.entries import Entry

EXIT_CODES = (("0", "done, also where nothing is kept"), FAILED)


@click.group(
    cls=Group,
    examples=(
        ("gpudiag cache info", "what is kept, and where"),
        ("gpudiag cache clear", ""),
        ("gpudiag explain report.nsys-rep --no-cache", "neither looks there nor keeps anything"),
    ),
)
def cache() -> None:
    """Show or clear what is kept of large captures.

    Reading a capture of gigabytes takes long, so that what gpudiag made of it is kept for the next time, in your own
    cache directory: the events and names that the report rests on, never the environment of the traced program. It is
    used again only if the capture, gpudiag and the settings are unchanged. What was not used for longest goes when
    there is too much. Everything there may be deleted at any time.
    """


@cache.command(
    cls=Command,
    sections={"Exit codes": EXIT_CODES},
    examples=(("gpudiag cache info", ""), ("gpudiag cache info --format json", "for programs")),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: for people; json: for programs.",
)
def info(form: str) -> None:
    """Say where the cache is, how large, and what it holds."""
    from gpudiag.cache import entries, place

    try:
        folder, why_not = str(place.folder()), ""
        kept = entries.entries(place.stores(make=False))
    except place.Unkept as reason:
        folder, why_not, kept = "", str(reason), []
    limit = place.limit()
    if form == "json":
        deliver(ended(json.dumps(_as_json(folder, why_not, limit, kept), indent=2)))
    else:
        deliver(ended("\n".join(_lines(folder, why_not, limit, kept))))


@cache.command(cls=Command, sections={"Exit codes": EXIT_CODES}, examples=(("gpudiag cache clear", ""),))
def clear() -> None:
    """Delete all that is kept. Runs at work go on with what they have opened."""
    from gpudiag.cache import entries, place

    try:
        gone = entries.clear(place.stores(make=False))
    except place.Unkept as reason:
        deliver(f"Nothing was deleted: {reason}.\n")
        return
    deliver(f"Deleted {_amount(gone)}.\n" if gone else "There was nothing to delete.\n")


def _lines(folder: str, why_not: str, limit: int, kept: list[Entry]) -> list[str]:
    from gpudiag.text.escape import one_line

    if why_not:
        return [one_line(f"There is no cache: {why_not}.")]
    lines = [one_line(f"{folder}: {_amount(kept)}, of at most {_size(limit)}")]
    for entry in reversed(kept):
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        lines.append(f"{_size(entry.bytes):>10}  last used {used}  {entry.capture}")
    return lines


def _as_json(folder: str, why_not: str, limit: int, kept: list[Entry]) -> dict[str, Any]:
    return {
        "folder": folder or None,
        "unusable": why_not or None,
        "limit_bytes": limit,
        "bytes": sum(entry.bytes for entry in kept),
        "captures": [
            {"file": entry.file.name, "capture": entry.capture, "bytes": entry.bytes, "last_used": int(entry.used)}
            for entry in reversed(kept)
        ],
    }


def _amount(kept: list[Entry]) -> str:
    if not kept:
        return "nothing is kept"
    return f"{len(kept)} {'entries' if len(kept) > 1 else 'entry'}, {_size(sum(entry.bytes for entry in kept))}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
