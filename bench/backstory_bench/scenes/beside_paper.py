"""The reconstruction beside the paper's, and the length of a record at which the share is 1 %.

A reconstruction has a nearly fixed number of calls: those of the program's start, and those of one
request. Its share of the recorded calls is that number divided by them. So the share falls as the
record grows, and the number of requests that make it 1 % follows from any record.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..paper_data import paper_table
from .verdicts import verdict_of

GOAL = 0.01
"""The share that the paper stays below."""


@dataclass(frozen=True)
class Case:
    """Medians of a case's reconstructions."""

    name: str
    kind: str
    recorded: float
    calls: float
    requests: float
    verdicts: tuple[str, ...]

    @property
    def each(self) -> float:
        """Recorded calls of one request, with its part of the start."""
        return self.recorded / max(self.requests, 1)

    @property
    def enough(self) -> int:
        """The number of recorded requests that make the share 1 %."""
        return math.ceil(self.calls / GOAL / self.each)


def cases(rows: Sequence[Mapping[str, object]]) -> Iterator[Case]:
    """Returns the cases that were reconstructed, in the order of the rows."""
    for name in dict.fromkeys(str(row["case"]) for row in rows):
        own = [row for row in rows if row["case"] == name and row.get("calls") not in (None, "")]
        if not own:
            continue

        def median(field: str, of: Sequence[Mapping[str, object]] = own) -> float:
            return statistics.median(float(str(row[field])) for row in of)

        verdicts = tuple(verdict_of(row) for row in rows if row["case"] == name)
        yield Case(name, str(own[0]["kind"]), median("recorded_calls"), median("calls"), median("requests"), verdicts)


def needed(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of the numbers of requests that make the share 1 %."""
    lines = [
        "| program | calls of a reconstruction | recorded calls of a request | requests for a share of 1 % |",
        "| --- | ---: | ---: | ---: |",
    ]
    for case in cases(rows):
        if case.kind == "server":
            lines.append(f"| {case.name} | {case.calls:.0f} | {case.each:.1f} | {case.enough} |")
    return lines


def beside_paper(rows: Sequence[Mapping[str, object]], good: Sequence[str]) -> list[str]:
    """Returns the rows of the paper's table VII, and below them those of this repository.

    `good`: the verdicts of a reconstruction that worked.
    """
    lines = [
        "| from | program | calls recorded | reconstructed | share | worked |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in paper_table("paper_reconstruction.csv"):
        cells = [f"{row['kind']}, row {row['row']}", row["recorded_calls"] or "–", row["calls"], row["share"]]
        lines.append(f"| the paper | {' | '.join(cells)} | – |")
    found = sorted(cases(rows), key=lambda case: (case.kind != "server", case.calls / case.recorded))
    for case in found:
        share = f"{100 * case.calls / case.recorded:.2f} %"
        worked = f"{sum(verdict in good for verdict in case.verdicts)} of {len(case.verdicts)}"
        cells = [f"{case.kind}, {case.name}", f"{case.recorded:.0f}", f"{case.calls:.0f}", share, worked]
        lines.append(f"| here | {' | '.join(cells)} |")
    return lines
