"""Limits on the rows of an untrusted rule: only what pricing, locating and ranking are made for may pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeGuard, get_args

import duckdb

from gpudiag.model import Ids, Row, Rule
from gpudiag.schema import BY_NAME

ID_LISTS: tuple[str, ...] = get_args(Ids)
MAX_VETOES = 200  # rows of a user's suppressor: each is held against every row of what it speaks of
_IDS = 1 << 31  # ids are 32-bit
_ID_COLUMNS = {
    "api_calls": ("api_call", "id"), "gpu_ops": ("gpu_op", "id"), "ranges": ("nvtx_range", "id"),
    "profiles": ("kernel_profile", "id"), "idle_intervals": ("idle_interval", "idle_interval"),
}  # fmt: skip


def id_ends(con: duckdb.DuckDBPyConnection, views: AbstractSet[str]) -> dict[str, int]:
    """List of ids → the first id that there is not."""
    ends: dict[str, int] = {}
    for name, (view, column) in _ID_COLUMNS.items():
        if view in BY_NAME or view in views:
            row = con.execute(f'select coalesce(max("{column}") + 1, 0) from "{view}"').fetchone()
            ends[name] = int(row[0]) if row else 0
    return ends


def without_repeats(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows whose lists name each thing once: a thousand times the same call would be looked up a thousand times."""
    return tuple(
        {key: list(dict.fromkeys(value)) if value and key in ID_LISTS else value for key, value in row.items()}
        for row in rows
    )


def unfit(rule: Rule, rows: Sequence[Row], loops: AbstractSet[int], ends: Mapping[str, int]) -> str:
    """Return what pricing, locating and ranking could not use in the rows of an untrusted rule, or nothing."""
    if rule.kind == "suppressor" and len(rows) > MAX_VETOES:
        return f"gives {len(rows)} rows; a suppressor gives at most {MAX_VETOES}"
    for row in rows:
        loop = row.get("loop")
        if loop is not None and not (_is_id(loop) and loop in loops):
            return f"gives {loop!r:.40} as loop; it must be null or the id of a loop"
        for name in ID_LISTS:
            ids = row.get(name)
            if ids is not None and not (isinstance(ids, list) and all(map(_is_id, ids))):
                return f"gives {ids!r:.40} as {name}; it must be a list of ids"
            if ids and max(ids) >= ends.get(name, _IDS):
                return f"gives {max(ids)} in {name}; there is no such id"
        for name in ("share", "share_low", "share_high", "recoverable", "recoverable_low", "recoverable_high"):
            part = row.get(name)
            if part is not None and not (_is_number(part) and 0 <= part <= 1):
                return f"gives {part!r:.40} as {name}; it must be a number from 0 to 1"
        length = row.get("duration_ns")
        if loop is None and length is not None and not (_is_number(length) and 0 <= length < math.inf):
            return f"gives {length!r:.40} as duration_ns; it must be a time"
        for name in ("nvtx_path", "kernel"):
            if not isinstance(row.get(name), str | None):
                return f"gives {row[name]!r:.40} as {name}; it must be a text"
    return ""


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _IDS


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
