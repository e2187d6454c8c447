"""The reconstruction beside the paper's, and the length of a record at which the share is 1 %.

A reconstruction has a nearly fixed number of calls: those of the program's start, and those of one
request. Its share of the recorded calls is that number divided by them. So the share falls as the
record grows, and the number of requests that make it 1 % follows from any record.

This does not hold for a program whose requests are fed with a part of all earlier ones, as a server
with TLS. Its share stays about the same in a longer record, so no number of requests follows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..paper_data import paper_table
from .all_attempts import executed, number
from .verdicts import verdict_of

GOAL = 0.01
"""The share that the paper stays below."""
GROWS = 0.1
"""A case of whose earlier requests a larger part is fed does not have a fixed number of calls."""


@dataclass(frozen=True)
class Case:
    """Medians of a case's reconstructions."""

    name: str
    kind: str
    recorded: float
    calls: float
    requests: float
    verdicts: tuple[str, ...]
    fed: float
    """The part of the earlier requests that is fed."""
    executed: float | None
    """Calls of all attempts. `None`: the series does not have them."""

    @property
    def each(self) -> float:
        """Recorded calls of one request, with its part of the start."""
        return self.recorded / max(self.requests, 1)

    def enough(self, calls: float | None) -> str:
        """Returns the number of recorded requests that make the share of these calls 1 %."""
        if calls is None:
            return ""
        return "–" if self.fed > GROWS else str(math.ceil(calls / GOAL / self.each))

    def share(self, calls: float | None) -> str:
        """Returns the share of the recorded calls."""
        return "–" if calls is None else f"{100 * calls / self.recorded:.2f} %"


def cases(rows: Sequence[Mapping[str, object]]) -> Iterator[Case]:
    """Returns the cases that were reconstructed, in the order of the rows."""
    for name in dict.fromkeys(str(row["case"]) for row in rows):
        own = [row for row in rows if row["case"] == name and row.get("calls") not in (None, "")]
        if not own:
            continue

        def median(field: str, of: Sequence[Mapping[str, object]] = own) -> float:
            return statistics.median(float(str(row[field])) for row in of)

        known = [calls for row in own if (calls := executed(row)) is not None]
        yield Case(
            name=name,
            kind=str(own[0]["kind"]),
            recorded=median("recorded_calls"),
            calls=median("calls"),
            requests=median("requests"),
            verdicts=tuple(verdict_of(row) for row in rows if row["case"] == name),
            fed=statistics.median(fed_part(row) for row in own),
            executed=statistics.median(known) if len(known) == len(own) else None,
        )


def fed_part(row: Mapping[str, object]) -> float:
    """Returns the part of the requests before this one that were fed with it."""
    before = (number(row, "request") or 1) - 1
    return (number(row, "fed") or 0) / max(before, 1)


def needed(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of the numbers of requests that make the share 1 %.

    A case whose share does not fall as the record grows has none, and the part of the earlier
    requests that is fed.
    """
    lines = [
        "| program | recorded calls of a request | fed of the earlier requests "
        "| calls of the last attempt | requests for a share of 1 % | calls of all attempts | requests for 1 % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for case in cases(rows):
        if case.kind == "server":
            all_calls = "" if case.executed is None else f"{case.executed:.0f}"
            cells = [case.name, f"{case.each:.1f}", f"{100 * case.fed:.0f} %"]
            cells += [f"{case.calls:.0f}", case.enough(case.calls), all_calls, case.enough(case.executed)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def beside_paper(rows: Sequence[Mapping[str, object]], good: Sequence[str]) -> list[str]:
    """Returns the rows of the paper's table VII, and below them those of this repository.

    `good`: the verdicts of a reconstruction that worked.
    """
    lines = [
        "| from | program | calls recorded | last attempt | share | all attempts | share | worked |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in paper_table("paper_reconstruction.csv"):
        cells = [f"{row['kind']}, row {row['row']}", row["recorded_calls"] or "–", row["calls"], row["share"]]
        lines.append(f"| the paper | {' | '.join(cells)} | – | – | – |")
    found = sorted(cases(rows), key=lambda case: (case.kind != "server", case.calls / case.recorded))
    for case in found:
        worked = f"{sum(verdict in good for verdict in case.verdicts)} of {len(case.verdicts)}"
        all_calls = "–" if case.executed is None else f"{case.executed:.0f}"
        cells = [f"{case.kind}, {case.name}", f"{case.recorded:.0f}", f"{case.calls:.0f}", case.share(case.calls)]
        cells += [all_calls, case.share(case.executed), worked]
        lines.append(f"| here | {' | '.join(cells)} |")
    return lines
