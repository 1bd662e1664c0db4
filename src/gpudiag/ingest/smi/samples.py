"""Values of many readings on their way to `smi_sample`: as arrays, which is ten times as fast as rows of Python."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from gpudiag.ingest.smi.fields import FIELDS

_BATCH = 200_000
_NO_TIME = -(1 << 62)
_NUMBERS = {name: number for number, name in enumerate(FIELDS)}
_ARRAYS = "smi_arrays"


class Samples:
    """Collected values; `flush` writes what is left of them."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._columns: tuple[list[int], list[int], list[int], list[int], list[float]] = ([], [], [], [], [])

    def add(self, time: int | None, device: int, reading: int, values: Mapping[str, float]) -> None:
        """Take in the values of one reading, by their field."""
        times, devices, readings, fields, numbers = self._columns
        for field, value in values.items():
            times.append(_NO_TIME if time is None else time)
            devices.append(device)
            readings.append(reading)
            fields.append(_NUMBERS[field])
            numbers.append(value)
        if len(numbers) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the values collected so far."""
        import numpy as np

        times, devices, readings, fields, numbers = self._columns
        arrays = {
            "time": np.asarray(times, np.int64),
            "device": np.asarray(devices, np.int32),
            "reading": np.asarray(readings, np.int32),
            "number": np.asarray(fields, np.int32),
            "value": np.asarray(numbers, np.float64),
        }
        names, units = list(FIELDS), [about.unit or None for about in FIELDS.values()]
        self._con.register(_ARRAYS, arrays)
        try:
            self._con.execute(
                f"""
                insert into smi_sample by name
                select nullif(a.time, {_NO_TIME}) as time, a.device, a.reading, n.field, a.value, n.unit
                from {_ARRAYS} a
                join (
                    select unnest($names::varchar[]) as field, unnest($units::varchar[]) as unit,
                        unnest(range(len($names::varchar[]))) as number
                ) n using (number)
                """,
                {"names": names, "units": units},
            )
        finally:
            self._con.unregister(_ARRAYS)
        for column in self._columns:
            column.clear()
