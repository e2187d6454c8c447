"""The size of deep logs beside the input and output that they describe.

The paper on C2SR has all inputs and outputs in its traces, and 2.12 % of other bytes. Its figures
are before compression, and so are these.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program


@dataclass(frozen=True)
class DeepShare:
    """Bytes of the deep logs of a store."""

    records: int
    """All bytes before compression."""
    stored: int
    """Bytes in them that calls read or wrote."""
    moved: int
    """Bytes that calls read or wrote, also those that the log has as a digest or a reference."""

    @property
    def other(self) -> float:
        """The part of the log that is neither input nor output (the paper: 2.12 %)."""
        return 1 - self.stored / self.records if self.records else 0.0

    @property
    def to_io(self) -> float:
        """The size of the log divided by that of all input and output."""
        return self.records / self.moved if self.moved else 0.0


def of_answer(answer: Mapping[str, object]) -> DeepShare:
    """Returns the figures in an answer of `store stats --deep --json`."""
    deep = answer["deep"]
    assert isinstance(deep, Mapping)
    return DeepShare(*(int(deep[name]) for name in ("record_bytes", "stored_io_bytes", "io_bytes")))


def of_store(store: Path) -> DeepShare:
    """Counts the bytes of the deep logs of a store."""
    words = [backstory_program.chosen(), "store", "stats", "--store", str(store), "--deep", "--json"]
    return of_answer(json.loads(subprocess.run(words, check=True, capture_output=True).stdout))


FIELDS = ["record_bytes", "stored_io_bytes", "io_bytes"]
"""The names of the figures in results."""


def fields(share: DeepShare | None) -> dict[str, object]:
    """Returns the figures of a row; empty where there is no deep log."""
    values = ("", "", "") if share is None else (share.records, share.stored, share.moved)
    return dict(zip(FIELDS, values, strict=True))


def of_rows(rows: Sequence[Mapping[str, object]]) -> DeepShare | None:
    """Returns the sums of the rows that have figures."""
    having = [row for row in rows if str(row.get("io_bytes", "")) not in ("", "nan", "None")]
    if not having:
        return None
    return DeepShare(*(sum(int(float(str(row[name]))) for row in having) for name in FIELDS))
