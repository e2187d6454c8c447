"""Lineage on Spark: the links of `of` and `uses`, as `backstory_lake.rounds` finds them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from backstory_lake import hubs, rounds
from backstory_lake.lake import Lake

from .engine import SparkEngine


class Lineage:
    """Answers questions about one snapshot of a lake.

    Steps that do not fit into the workers' memory are kept in files in `scratch`. This is the
    address of a directory that the driver and all workers reach, such as `file:///mnt/shared`. A
    plain path means Hadoop's default file system. Without `scratch`, workers keep such steps on
    their own disks, which takes longer.
    """

    def __init__(self, session: SparkSession, lake: Lake, scratch: str | None = None) -> None:
        self.engine = SparkEngine(session, lake, scratch)
        #: The nodes that became better in each round of the last question.
        self.rounds: list[int] = []
        self._summary = False

    def lineage(
        self,
        files: Iterable[int],
        direction: str,
        bound: int | None = None,
        possible: bool = True,
        most: int | None = None,
        summary: bool = False,
    ) -> DataFrame:
        """The links from or to files.

        `files` are keys, `direction` is `back` or `forth`, and `bound` the greatest number of
        processes on a path. Without `possible`, flows that were not observed are left out. Contents
        that more than `most` edges touch are hubs: nothing is followed from them. With `summary`,
        the links into hubs are left out, too. `hubs` reports both.
        """
        way = rounds.Way(direction, bound, possible, most, summary)
        self.rounds = rounds.lineage(self.engine, files, way)
        self._summary = summary
        return self.engine.session.sql(rounds.answer())

    def close(self) -> None:
        """Frees the workers' memory, and removes the files in `scratch`."""
        self.engine.close()

    def hubs(self) -> DataFrame:
        """The hubs that the last question with a rule about hubs came to."""
        return self.engine.session.sql(hubs.named(hubs.REPORT, str(self._summary)))
