"""Extrapolates the model to lakes that were not measured, and finds the limits that they meet."""

from __future__ import annotations

import math
from dataclasses import dataclass

from backstory_lake.batches import BUCKETS, NUMBERS
from backstory_lake.flows import BROADCAST

from .measure import Measurement
from .model import OWNERS, Model

#: A worker of the plan: its cores, and its bytes of memory.
CORES, MEMORY = 16, 64e9
WORKERS = (10, 100, 1000)
EDGES = (1e9, 1e10, 1e11, 1e12)
#: The question of the plan: an ancestry with so many rounds and links.
ROUNDS, LINKS = 20, 1_000_000
#: Bytes of a data file after `compact`, and seconds that are too long.
DATA_FILE, LONG = 128e6, 3600


@dataclass(frozen=True)
class Limit:
    """A limit, and the edges at which a lake meets it."""

    edges: float
    name: str
    remedy: str


class Plan:
    """Extrapolates measurements."""

    def __init__(self, measured: list[Measurement], models: list[Model]) -> None:
        self._models = {one.kind.name: one for one in models}
        self._lake = {}
        # The largest lake is the last.
        by_size = sorted(measured, key=lambda one: one.edges)
        for one in by_size:
            if one.engine == "lake":
                self._lake[one.question] = one
        spark = [one for one in by_size if one.engine == "spark"]
        # Without a question about origins, Spark keeps only what later uses need.
        whole = {one.edges for one in spark if one.question == "first question"}
        kept = [one for one in spark if one.bytes and one.edges in whole]
        self._kept = kept[-1].bytes / kept[-1].edges if kept else 0.0
        shuffles = [one for one in measured if one.question.startswith("uses") and one.shuffled]
        self._shuffled = max((one.shuffled / one.edges for one in shuffles), default=0.0)

    def text(self) -> str:
        """The sections about what is not measured."""
        return self._table() + self._one_machine() + self._limits() + self._refuted()

    def _seconds(self, kind: str, edges: float, workers: int) -> float | None:
        model = self._models.get(kind)
        if model is None:
            return None
        one = Measurement("", "", int(edges), rounds=ROUNDS, links=LINKS, files=LINKS)
        return model.predict(one) / (workers * CORES)

    def _table(self) -> str:
        from .page import number, table

        rows = []
        per_edge = self._lake["all tables"].bytes / self._lake["all tables"].edges
        for edges in EDGES:
            for workers in WORKERS:
                times = [
                    self._seconds(kind, edges, workers)
                    for kind in ("Spark: first", "Spark: lineage", f"Spark: {OWNERS}")
                ]
                rows.append(
                    [
                        number(edges),
                        number(edges * per_edge / 1e12),
                        str(workers),
                        *("not measured" if one is None else number(one) for one in times),
                        number(self._kept * edges / workers / 1e9),
                    ]
                )
        head = ["edges", "TB in the lake", "workers", "s, first question", "s, ancestry"]
        head += [f"s, {OWNERS}", "GB kept a worker"]
        return f"""
## Larger lakes, extrapolated

The ancestry has {ROUNDS} rounds and {number(LINKS)} links. The model divides the work by all cores,
and knows no network and no delay of a round. So these are lower bounds: with even work, on cores
like those that were measured.{self._constant()}
{table(head, rows)}"""

    def _constant(self) -> str:
        """A remark if the size of the lake has no part in the time of an ancestry."""
        model = self._models.get("Spark: lineage")
        if model is None or any(
            value > 0 for term, value in model.factors.items() if "edge" in term
        ):
            return ""
        return (
            "\nIn the measured lakes, the core seconds of an ancestry grew with its links, and not "
            "with the lake. Whether this holds for larger lakes is not known."
        )

    def _partitions(self) -> int:
        """The partitions of the largest lake. Each has a data file at least, also after `compact`.

        Each table with rows has as many data files as the others, so their number follows.
        """
        tables = self._lake["all tables"].files / self._lake["the table edges"].files
        return round(tables) * self._lake["make"].rounds * BUCKETS

    def _one_machine(self) -> str:
        from .page import number, table

        lake, least = self._lake["all tables"], self._partitions()
        rows = []
        for edges in (1e8, 1e9, 1e10):
            files = max(edges * lake.bytes / lake.edges / DATA_FILE, least)
            times = []
            for kind in ("DuckDB: open", "DuckDB: lineage", f"DuckDB: {OWNERS}"):
                model = self._models.get(kind)
                one = Measurement("", "", int(edges), links=LINKS, files=math.ceil(files))
                # The list of data files is read by one thread.
                cores = 1 if kind == "DuckDB: open" else CORES
                times.append(number(model.predict(one) / cores) if model else "not measured")
            rows.append([number(edges), number(math.ceil(files)), *times])
        head = ["edges", "data files", "s, open", "s, ancestry", f"s, {OWNERS}"]
        return f"""
DuckDB on one such machine, if memory suffices. Its cores share the work of a question, but one
thread opens a lake. The data files are taken to have {DATA_FILE / 1e6:.0f} MB each. But there is
one at least for each table, day and bucket of machines: {number(least)} for the days of the largest
lake above. A lake of more days has more.
{table(head, rows)}"""

    def _limits(self) -> str:
        from .page import number, table

        rows = [[number(one.edges), one.name, one.remedy] for one in self.limits()]
        return f"""
## What breaks first, extrapolated

The edges at which a lake with {WORKERS[-1]} workers meets each limit, the nearest first.
{table(["edges", "limit", "remedy"], rows)}"""

    def limits(self) -> list[Limit]:
        """The limits, the nearest first."""
        from .page import number

        lake, hub = self._lake["all tables"], self._lake.get("hub")
        found = [
            Limit(
                NUMBERS * lake.edges / lake.runs,
                f"a run's number in the lake has 31 bits: {number(NUMBERS)} runs",
                "a new form of the lake, with wider keys",
            )
        ]
        if self._kept:
            found.append(
                Limit(
                    WORKERS[-1] * MEMORY / self._kept,
                    "the steps that Spark keeps fill the workers' memory: each round reads disks",
                    "more workers; ask about some days only",
                )
            )
        first = self._models.get("Spark: first")
        if hub and first and first.factors["edge"]:
            # One task has all rows of a content. Its cost for a row is that of an edge at most.
            share = (hub.links + hub.files) / lake.edges
            found.append(
                Limit(
                    LONG / (share * first.factors["edge"]),
                    "the content with the most copies takes one task an hour",
                    "split the rows of such contents over several tasks",
                )
            )
        if hub and hub.links:
            found.append(
                Limit(
                    BROADCAST * lake.edges / hub.links,
                    "a frontier forth from a layer is too large to be sent to each worker, "
                    f"and each round shuffles ({self._shuffled:.0f} bytes an edge were measured)",
                    "a bound, or a summary of hubs",
                )
            )
        opened = self._models.get("DuckDB: open")
        per_file = opened.factors["data file"] if opened else 0
        if per_file:
            files = LONG / 6 / per_file
            found.append(
                Limit(
                    files * DATA_FILE * lake.edges / lake.bytes,
                    f"the list of data files of {DATA_FILE / 1e6:.0f} MB takes the driver ten "
                    "minutes",
                    "conditions on the day in the list of files",
                )
            )
        return sorted(found, key=lambda one: one.edges)

    def _refuted(self) -> str:
        from .page import table

        rows = []
        for model in self._models.values():
            factor = 1 + 2 * max(model.worst, model.beyond or 0)
            rows.append([model.kind.name, f"{1 / factor:.2f}", f"{factor:.2f}"])
        lake = self._lake["all tables"]
        return f"""
## Numbers that would refute this

Measure a lake that is ten times as large as the largest one above. The model of a kind is refuted
if the core seconds, as parts of the model's, are outside of these bounds. They follow from twice
the worst error above: where they are far apart, the model gives an order of magnitude.
{table(["kind", "less than", "more than"], rows)}
- The lake is refuted by one of 10^8 edges, after `compact`, with more than \
{1.25 * lake.bytes / lake.edges:.0f} bytes an edge.
- The division by cores is refuted by a cluster of ten workers whose ancestry takes more than twice
  the core seconds of two workers.
"""
