"""Lineage as a frontier join: each round follows the steps of the nodes that became better.

In: a lake. Out: the links of `backstory of` and `uses`. The rules are those of
`backstory_lake.flows`, and results are equal to `lineage` in SQL. No row passes through Python: it
only counts the frontier of each round.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from backstory_lake.errors import MisuseError
from backstory_lake.flows import BROADCAST, FIRST, JUMPS, LAST, LINK, STEPS
from backstory_lake.lake import Lake
from backstory_lake.tables import EDGES

from .tables import open_views

#: Rounds between two checkpoints. A plan grows with each round, and a checkpoint cuts it.
CHECKPOINT = 4
#: Edges of a task.
PART = 1_000_000

_REACHED = "node BIGINT, depth INT, moment BIGINT, root BOOLEAN"


class Lineage:
    """Answers questions about one snapshot of a lake."""

    def __init__(self, session: SparkSession, lake: Lake) -> None:
        self._session = session
        views = open_views(session, lake)
        self._forgetful = views["lake_forgetful"].persist()
        # Each round reads all steps. Workers keep them in memory, or else on their disks.
        parts = _parts(session, lake)
        self._flows = {way: _kept(session.sql(text), parts) for way, text in STEPS.items()}
        self._jumps = {way: _kept(session.sql(text), parts) for way, text in JUMPS.items()}
        #: The nodes that became better in each round of the last question.
        self.rounds: list[int] = []

    def lineage(
        self, files: Iterable[int], direction: str, bound: int | None = None, possible: bool = True
    ) -> DataFrame:
        """The links from or to files.

        `files` are keys, `direction` is `back` or `forth`, and `bound` the greatest number of
        processes on a path. Without `possible`, flows that were not observed are left out.
        """
        if direction not in STEPS:
            raise MisuseError(f"the direction of a lineage is back or forth, not {direction}")
        steps, jumps = self._flows[direction], self._jumps[direction]
        if not possible:
            steps, jumps = (one.where("certainty = 'seen'") for one in (steps, jumps))
        reached = self._reached(files, steps, jumps, bound)
        return self._links(reached, steps, jumps, direction, bound)

    def _reached(
        self, files: Iterable[int], steps: DataFrame, jumps: DataFrame, bound: int | None
    ) -> DataFrame:
        """The best moment of each node, and of each number of processes if that is bounded."""
        roots = [(file, 0, LAST, True) for file in sorted(set(files))]
        frontier = self._session.createDataFrame(roots, _REACHED)
        reached, count, turn = frontier, len(roots), 0
        self.rounds = []
        while count:
            turn += 1
            known = reached.select("node", "depth", f.col("moment").alias("known"))
            found = self._next(_small(frontier, count), steps, jumps, bound)
            frontier = (
                found.join(known, ["node", "depth"], "left")
                .where("known IS NULL OR moment > known")
                .select("node", "depth", "moment", f.lit(False).alias("root"))
            )
            frontier = self._cut(frontier)
            # This executes the round.
            count = frontier.count()
            self.rounds.append(count)
            old = reached.join(_small(frontier, count), ["node", "depth"], "left_anti")
            reached = old.unionByName(frontier)
            if turn % CHECKPOINT == 0:
                reached = self._cut(reached)
        return reached.persist()

    def _cut(self, rows: DataFrame) -> DataFrame:
        """Keeps the rows of a round. A worker that dies loses those that only it has."""
        if self._session.sparkContext.getCheckpointDir():
            return rows.checkpoint(eager=False)
        return rows.localCheckpoint(eager=False)

    def _next(
        self, frontier: DataFrame, steps: DataFrame, jumps: DataFrame, bound: int | None
    ) -> DataFrame:
        """The nodes one step from a frontier, each with the best moment."""
        depth = "depth + crossing" if bound is not None else "0"
        near = self._open(frontier, steps).selectExpr(
            "there AS node", "least(high, moment) AS moment", f"CAST({depth} AS INT) AS depth"
        )
        shifted = f"""least(high, CASE WHEN shift IS NULL THEN {LAST} WHEN shift = 0 THEN moment
          ELSE CAST(greatest(least(CAST(moment AS DECIMAL(38, 0)) + shift, {LAST}), {FIRST})
          AS BIGINT) END) AS moment"""
        far = frontier.join(jumps, (frontier.node == jumps.here) & (jumps.low <= frontier.moment))
        found = near.unionByName(far.selectExpr("there AS node", shifted, "depth"))
        if bound is not None:
            found = found.where(f.col("depth") <= bound)
        return found.groupBy("node", "depth").agg(f.max("moment").alias("moment"))

    def _open(self, reached: DataFrame, steps: DataFrame) -> DataFrame:
        """The steps that information can take from nodes."""
        stops = f.broadcast(self._forgetful).withColumn("stops", f.lit(True))
        able = reached.join(stops, "node", "left").where("root OR stops IS NULL").drop("stops")
        taken = (able.node == steps.here) & (steps.low <= able.moment)
        return able.join(steps, taken)

    def _links(
        self,
        reached: DataFrame,
        steps: DataFrame,
        jumps: DataFrame,
        direction: str,
        bound: int | None,
    ) -> DataFrame:
        columns = ("source", "target", "flow", "how", "certainty", "since", "until")
        taken = self._open(reached, steps)
        if bound is not None:
            taken = taken.where(f.col("depth") + f.col("crossing") <= bound)
        inside = taken.select(*columns).distinct()
        best = reached.groupBy("node").agg(f.max("moment").alias("best"))
        best = best.withColumn("moment", f.expr("best" if direction == "back" else "~best"))
        taken = (best.node == jumps.here) & (jumps.low <= best.best)
        between = best.join(jumps, taken).selectExpr(
            *columns[:5],
            "least(modified, moment) AS since",
            "greatest(modified, least(moment, changed)) AS until",
        )
        return inside.unionByName(between).selectExpr(*LINK)


def _parts(session: SparkSession, lake: Lake) -> int:
    """The tasks of a round: enough for all cores, and each with rows that fit into memory."""
    snapshot = lake.table(EDGES).current_snapshot()
    rows = int((snapshot and snapshot.summary and snapshot.summary["total-records"]) or 0)
    return max(2 * session.sparkContext.defaultParallelism, -(-rows // PART))


def _kept(rows: DataFrame, parts: int) -> DataFrame:
    """Keeps rows on the workers. A lake has many small files, which are no good tasks."""
    return rows.coalesce(parts).persist()


def _small(frontier: DataFrame, count: int) -> DataFrame:
    """Sends a small frontier to each worker, so that no edge is shuffled."""
    return f.broadcast(frontier) if count <= BROADCAST else frontier
