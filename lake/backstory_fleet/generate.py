"""Writes a fleet into a lake, as the shipments of its machines would have done.

The rows go through the same writer as those of `ship`. Memory holds the jobs of one block.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa

from backstory_lake.data_files import write
from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.reading import data_files
from backstory_lake.tables import BY_NAME, TABLES

from .fleet import Fleet, Parameters, Size
from .layers import Builds
from .rows import Block, Patterns
from .shelves import Shelves
from .templates import Templates

#: Edges in memory that are written at once.
FULL = 1_000_000


@dataclass
class Generated:
    """The rows that were written, and the seconds that it took."""

    rows: dict[str, int] = field(default_factory=dict)
    making: float = 0.0
    writing: float = 0.0


def generate(
    templates: Templates, lake: Lake, size: Size, parameters: Parameters | None = None
) -> Generated:
    """Writes a fleet into an empty lake."""
    if any(data_files(lake.table(table)) for table in TABLES):
        raise LakeError(f"{lake.name} has rows already; a fleet needs a lake of its own")
    fleet = Fleet(templates, parameters or Parameters(), size)
    patterns = Patterns(templates)
    shelves = Shelves(size.machines, fleet.parameters.seed)
    done = Generated({table.name: 0 for table in TABLES})
    waiting: dict[str, list[pa.Table]] = {table.name: [] for table in TABLES}
    shift = -1
    for jobs in fleet.blocks():
        if jobs.shift != shift:
            shelves.end_shift()
            shift = jobs.shift
        if not len(jobs):
            continue
        began = time.monotonic()
        is_build = jobs.layer[0] >= 0
        block = Builds(fleet, patterns, jobs) if is_build else Block(fleet, patterns, shelves, jobs)
        for name, rows in block.tables():
            waiting[name].append(rows)
        done.making += time.monotonic() - began
        if sum(map(len, waiting["edges"])) >= FULL:
            _write(lake, waiting, done)
    _write(lake, waiting, done)
    return done


def _write(lake: Lake, waiting: dict[str, list[pa.Table]], done: Generated) -> None:
    """Appends the waiting rows, those of `runs` at the end."""
    began = time.monotonic()
    for name, parts in waiting.items():
        rows = pa.concat_tables(parts) if parts else []
        if len(rows):
            of = BY_NAME[name]
            lake.append(of, write(lake.table(of), of, rows))
            done.rows[name] += len(rows)
        parts.clear()
    done.writing += time.monotonic() - began
