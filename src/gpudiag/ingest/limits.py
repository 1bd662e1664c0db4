"""Limits on what a file may hold. No export comes near them; beyond them SQLite takes minutes, or sums cannot be."""

from __future__ import annotations

MOST_TABLES = 5_000
"""Tables and indexes of one file: an export has about a hundred, and SQLite's time grows with their square."""

DEEPEST = 20
"""Levels of a table's pages; SQLite itself gives up below."""

LONGEST_DEFAULT = 1_000
"""Characters of a column's default value: rows that lack the column each take that much memory, and none on disk."""

CHECKED_BYTES = 4 << 20
"""Bytes of pages that are checked at once: this takes about ten times as much memory."""

INTERRUPTIBLE = 100_000
"""Steps of SQLite's machine between two moments at which a signal is heard: a few milliseconds."""

STEPS, STEPS_A_BYTE = 300_000_000, 20
"""Steps of SQLite's machine for a file of no size, some five seconds, and more for each byte: exports take below 1."""

LARGEST_COPY = 1 << 42
"""Bytes of one copy: no memory that a GPU reaches holds as many, and a damaged file may say more."""
