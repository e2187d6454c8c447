"""Compares a fleet with its corpus: the distance of Kolmogorov and Smirnov for some quantities.

The distance is the greatest difference of two cumulative distributions: 0 for equal ones, 1 for
those that do not meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.questions import Limits, Question

from . import templates
from .files import INSIDE

#: Each quantity as a list of values with their frequencies. Builds of layers are not recorded ones.
QUANTITIES = {
    "edges of a run": "SELECT count(*) AS value FROM edges WHERE run IN (FROM known) GROUP BY run",
    "processes of a run": (
        "SELECT count(*) AS value FROM processes WHERE run IN (FROM known) GROUP BY run"
    ),
    "reads of a process": (
        "SELECT count(*) FILTER (WHERE how = 'read') AS value FROM edges "
        "WHERE run IN (FROM known) GROUP BY process"
    ),
    "writes of a process": (
        "SELECT count(*) FILTER (WHERE how = 'write') AS value FROM edges "
        "WHERE run IN (FROM known) GROUP BY process"
    ),
    "processes that a process started": (
        "SELECT count(i.process) AS value FROM processes p LEFT JOIN informs i "
        "ON i.origin = p.process AND i.how = 'fork' WHERE p.run IN (FROM known) GROUP BY p.process"
    ),
    "readers of a version in a run": (
        "SELECT count(DISTINCT process) AS value FROM edges WHERE how IN ('read', 'exec') "
        "AND run IN (FROM known) GROUP BY file"
    ),
    "characters of a path": (
        "SELECT length(path) AS value FROM files WHERE path IS NOT NULL AND run IN (FROM known)"
    ),
    "bytes of a version": (
        "SELECT size AS value FROM files WHERE size IS NOT NULL AND kind = 'file' "
        "AND run IN (FROM known)"
    ),
    "µs of an operation": (
        "SELECT (ended_ns - started_ns) // 1000 AS value FROM edges WHERE run IN (FROM known)"
    ),
}

#: Their sum is the greatest distance that is no fault. The first is for a fleet's larger jobs.
#: The second, over the root of the number of runs, is the deviation of a sample at a level of 1 %.
TOLERANCE, DEVIATION = 0.1, 1.63


@dataclass(frozen=True)
class Comparison:
    """A quantity, its distance, and the greatest one that is no fault."""

    quantity: str
    distance: float
    bound: float

    @property
    def holds(self) -> bool:
        """True if the fleet is like its corpus."""
        return self.distance <= self.bound


def compare(corpus: Lake, fleet: Lake) -> list[Comparison]:
    """Compares all quantities, and how often a run reads what an earlier one made."""
    one, other = (Question(lake, Limits(0, 4000)) for lake in (corpus, fleet))
    for question in (one, other):
        question.execute(
            "CREATE TEMP TABLE known AS SELECT run FROM runs "
            "WHERE NOT starts_with(command, 'tar -xf layer-')"
        )
    # Few large runs have most processes, so a sample of n runs is worth less than n.
    sql = """SELECT sum(n) ** 2 / sum(n * n) FROM (
      SELECT count(*)::DOUBLE AS n FROM processes WHERE run IN (FROM known) GROUP BY run)"""
    runs = other.execute(sql).fetchall()[0][0]
    if not runs:
        raise LakeError(f"{fleet.name} has no runs to compare")
    bound = TOLERANCE + DEVIATION / math.sqrt(runs)
    found = []
    for quantity, sql in QUANTITIES.items():
        values = [_frequencies(question, sql) for question in (one, other)]
        found.append(Comparison(quantity, distance(*values), bound))
    directory = templates.directory_of(one)
    shares = (templates.upstream(one, directory), templates.upstream(other, INSIDE))
    found.append(Comparison("inputs that a run made", abs(shares[0] - shares[1]), bound))
    return found


def _frequencies(question: Question, sql: str) -> dict[int, int]:
    answer = question.execute(f"SELECT value, count(*) FROM ({sql}) GROUP BY value")
    return dict(answer.fetchall())


def distance(one: dict[int, int], other: dict[int, int]) -> float:
    """The greatest difference of two cumulative distributions, each a count for each value."""
    totals = sum(one.values()), sum(other.values())
    if not all(totals):
        return 0.0 if totals == (0, 0) else 1.0
    sums, greatest = [0.0, 0.0], 0.0
    for value in sorted(one.keys() | other.keys()):
        sums[0] += one.get(value, 0) / totals[0]
        sums[1] += other.get(value, 0) / totals[1]
        greatest = max(greatest, abs(sums[0] - sums[1]))
    return greatest
