"""Results as tables: the valid cells, their ratios to native, and the syscalls of each workload."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from ..matrix.journal import ROWS, Journal, Unusable, parquet
from .calls import by_category


@dataclass(frozen=True)
class Results:
    """The results of one matrix, or of several matrices from one machine."""

    rows: pd.DataFrame
    plans: list[dict[str, Any]]

    @property
    def cells(self) -> pd.DataFrame:
        """Cells of the accepted blocks, each with its ratio to the native runs of its block.

        `log_ratio` is the logarithm of the ratio of the figures that the program prints, or else of
        the wall times. `log_cpu` is that of the processor times. A cell that was stopped at the
        time limit is `censored`: its true ratio is at least the given one.
        """
        return _ratios(self.rows)

    @property
    def counts(self) -> pd.DataFrame:
        """Syscalls of one loop, by workload and category."""
        found = self.rows[self.rows["kind"] == "counts"].drop_duplicates("workload")
        known = ((str(row.workload), json.loads(str(row.counts))) for row in found.itertuples())
        table = {workload: by_category(calls) for workload, calls in known if calls}
        return pd.DataFrame.from_dict(table, orient="index").fillna(0.0)

    @property
    def quality(self) -> pd.DataFrame:
        """The rows with precision and recall."""
        return self.rows[self.rows["kind"] == "quality"]

    @property
    def starts(self) -> dict[str, float]:
        """Seconds that a collector adds to a command that does nothing, by collector."""
        found = self.rows[(self.rows["kind"] == "start") & (self.rows["mark"] == "ok")]
        return {str(name): float(s) for name, s in found.groupby("collector")["start_s"].median().items()}

    def cap(self) -> float:
        """The time limit of a cell, as a multiple of the native run's time."""
        return float(self.plans[0]["options"]["cut"])


def _one(path: Path) -> Results:
    if path.is_dir():
        path = parquet(Journal(path)) if (path / ROWS).exists() else max(path.glob("*.parquet"))
    table = pq.read_table(path)
    plan = json.loads((table.schema.metadata or {}).get(b"backstory_bench", b"{}"))
    rows = table.to_pandas()
    for column in ("figure", "log_bytes", "disturbed", "kept", "counts", "why", "start_s"):
        if column not in rows:
            rows[column] = None
    rows["source"] = path.parent.name
    return Results(rows, [plan])


def load(path: Path) -> Results:
    """Reads a Parquet file, the directory of a matrix, or a directory of such directories.

    # Errors
    `Unusable` if there are no results.
    """
    if path.is_dir() and not (path / ROWS).exists() and not list(path.glob("*.parquet")):
        inner = sorted({p.parent for p in path.glob("*/*") if p.name == ROWS or p.suffix == ".parquet"})
        if not inner:
            raise Unusable(f"{path} holds no results of a matrix")
        parts = [_one(directory) for directory in inner]
        return Results(pd.concat([p.rows for p in parts], ignore_index=True), [plan for p in parts for plan in p.plans])
    if not path.exists():
        raise Unusable(f"{path} does not exist")
    return _one(path)


def holds(rows: pd.DataFrame, kind: str, column: str) -> pd.DataFrame:
    """Returns the rows of a kind in which the boolean column is true."""
    return rows[(rows["kind"] == kind) & rows[column].map(lambda value: value is True or value == 1.0)]


BLOCK = ["source", "workload", "iteration"]


def _ratios(rows: pd.DataFrame) -> pd.DataFrame:
    kept = holds(rows, "block", "kept")
    cells = rows[rows["kind"] == "cell"].merge(kept[[*BLOCK, "attempt"]], on=[*BLOCK, "attempt"])
    cells = cells.assign(value=pd.to_numeric(cells["figure"], errors="coerce").fillna(cells["wall_s"]))
    native = cells[(cells["collector"] == "none") & (cells["mark"] == "ok")].assign(
        native_value=lambda t: np.log(t["value"].astype(float)), native_cpu=lambda t: np.log(t["cpu_s"].astype(float).clip(1e-6)),
        native_wall=lambda t: np.log(t["wall_s"].astype(float)),
    )  # fmt: skip
    base = native.groupby(BLOCK)[["native_value", "native_cpu", "native_wall"]].mean().apply(np.exp).reset_index()
    cells = cells.merge(base, on=BLOCK)
    counted = cells["mark"].isin(["ok", "left", "cut"])
    cells["censored"] = cells["mark"] == "cut"
    value = cells["value"].astype(float).where(~cells["censored"], cells["wall_s"].astype(float))
    against = cells["native_value"].where(~cells["censored"], cells["native_wall"])
    cells["log_ratio"] = (value / against).apply(np.log).where(counted)
    cells["log_cpu"] = (cells["cpu_s"].astype(float).clip(1e-6) / cells["native_cpu"]).apply(np.log).where(counted)
    return cells
