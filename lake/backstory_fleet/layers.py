"""The runs that build container layers: each unpacks the files of one layer.

All machines then have these files, so questions about a layer lead to all runs of the fleet.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backstory_lake.tables import BY_NAME, FORMAT, RUNS

from .files import DEVICE
from .fleet import BEGIN, DAY, SHIFTS, Fleet, Jobs
from .identities import digests, mixed, uuid_of
from .rows import Patterns, run_id
from .templates import SYSTEM

Array = np.ndarray[Any, Any]


class Builds:
    """The rows of the jobs that build layers."""

    def __init__(self, fleet: Fleet, patterns: Patterns, jobs: Jobs) -> None:
        self._fleet, self._patterns, self._jobs = fleet, patterns, jobs
        self._version = (jobs.shift + 1) // (SHIFTS * fleet.parameters.layer_days)

    @cached_property
    def _files(self) -> Array:
        """Rows of the templates with the files of the system, each path once."""
        templates = self._patterns.templates
        table = templates.rows["files"].table
        is_file = pc.and_(pc.equal(table["kind"], "file"), pc.is_valid(table["digest"]))
        chosen = np.flatnonzero((templates.classes == SYSTEM) & is_file.to_numpy())
        _, first = np.unique(self._patterns.names.path[chosen], return_index=True)
        return np.asarray(chosen[np.sort(first)])

    def tables(self) -> list[tuple[str, pa.Table]]:
        """All tables with rows, `runs` at the end."""
        found: dict[str, list[pa.Table]] = {"processes": [], "files": [], "edges": [], "runs": []}
        for at in range(len(self._jobs)):
            layer = int(self._jobs.layer[at])
            row = self._files
            path = self._patterns.names.path[row]
            image = layer // self._fleet.parameters.layers
            row = row[self._fleet.layer_of(path, np.full(len(row), image)) == layer]
            if len(row):
                for name, rows in self._build(at, layer, row).items():
                    found[name].append(rows)
        return [(name, pa.concat_tables(rows)) for name, rows in found.items() if rows]

    def _build(self, at: int, layer: int, row: Array) -> dict[str, pa.Table]:
        seed, start = self._fleet.parameters.seed, int(self._jobs.start[at])
        number, count = int(self._jobs.number[at]), len(row)
        names, files = self._patterns.names, self._patterns.templates.rows["files"]
        moment = start + np.arange(count) * 1000
        content = self._fleet.layer_content(
            np.full(count, layer), np.full(count, self._version), names.path[row], names.digest[row]
        )
        inode = (mixed(seed, 61, number, np.arange(count)) >> np.uint64(24)).astype(np.int64)
        key = number << 32 | np.arange(count)
        command = f"tar -xf layer-{layer}.tar"
        shared = self._shared(at)
        return {
            "processes": _table(
                "processes", 1, shared, process=number << 32, pid=100 + layer, command=command,
                program="/usr/bin/tar", cwd="/", started_ns=start, exit=0,
                ended_ns=start + count * 1000,
            ),
            "files": _table(
                "files", count, shared, file=key, path=files.table["path"].take(pa.array(row)),
                kind="file", version=1, size=files.table["size"].take(pa.array(row)),
                modified_ns=moment, changed_ns=moment, born_ns=moment, device=DEVICE, inode=inode,
                digest=digests(content, np.ones(count, bool)), last=True,
            ),
            "edges": _table(
                "edges", count, shared, process=number << 32, file=key, how="write", via="library",
                flow="generated", certainty="seen", started_ns=moment, ended_ns=moment + 1000,
            ),
            "runs": self._run(at, shared, command, count),
        }  # fmt: skip

    def _shared(self, at: int) -> dict[str, Any]:
        jobs, seed = self._jobs, self._fleet.parameters.seed
        return {
            "day": datetime.fromtimestamp(int(jobs.start[at]) // 10**9, UTC).date(),
            "bucket": int(self._fleet.buckets[0]),
            "shipment": int(mixed(seed, 62, jobs.shift)[0] >> np.uint64(1)),
            "number": int(jobs.number[at]),
            "run": run_id(int(jobs.number[at])),
        }

    def _run(self, at: int, shared: dict[str, Any], command: str, count: int) -> pa.Table:
        start = int(self._jobs.start[at])
        return _table(
            "runs", 1, shared, command=command, cwd="/", started_ns=start, exit=0, complete=True,
            ended_us=start // 1000 + count, host=self._fleet.hosts[0], processes=1, files_read=0,
            files_written=count, since_boot_ns=start - BEGIN + DAY, boot=uuid_of(2, 0), uid=0,
            undone=False, backstory="0.1.0", machine=uuid_of(1, 0), owner="root", format=FORMAT,
            shipped_us=(start + DAY) // 1000, forgotten=False,
        )  # fmt: skip


def _table(name: str, count: int, shared: dict[str, Any], **columns: Any) -> pa.Table:
    """Rows of a table. A single value is that of all rows; other columns are NULL."""
    of = BY_NAME[name].arrow if name != RUNS.name else RUNS.arrow
    made = []
    for field in of:
        value = (shared | columns).get(field.name)
        if isinstance(value, (np.ndarray, pa.Array, pa.ChunkedArray)):
            column = (
                value.combine_chunks() if isinstance(value, pa.ChunkedArray) else pa.array(value)
            )
            made.append(column.cast(field.type))
        else:
            made.append(pa.repeat(pa.scalar(value, field.type), count))
    return pa.table(made, schema=of)
