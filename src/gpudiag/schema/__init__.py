"""The canonical tables: every reader writes these, every view reads these, and nothing else is shared.

One definition serves the DDL, the documentation and the defaults of rule tests. Times are integer ns on the input's
clock; identifiers are dense integers from 0; texts that repeat are interned in `name`. Columns may only be added.
"""

from __future__ import annotations

from gpudiag.schema.event_tables import EVENTS
from gpudiag.schema.job_tables import JOBS
from gpudiag.schema.profile_tables import KERNEL_PROFILES, OTHER_FILES
from gpudiag.schema.run_tables import FOUND_IN_FILES, LOOPS, RUN
from gpudiag.schema.table import Column, Table

__all__ = ["BY_NAME", "TABLES", "Column", "Table"]

TABLES: tuple[Table, ...] = (*FOUND_IN_FILES, *LOOPS, *EVENTS, *KERNEL_PROFILES, *OTHER_FILES, *RUN, *JOBS)
BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
