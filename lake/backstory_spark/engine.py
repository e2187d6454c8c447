"""The engine for many machines: the SQL of `backstory_lake.rounds` on Spark.

Workers keep all steps in memory, or else on their disks, sorted by the node where they begin. Most
rounds follow few nodes. These nodes are written into the query, and workers read only the batches
of steps that have one of them. A larger frontier goes to each worker, so neither steps nor known
nodes are shuffled. The first frontier that is too large for that divides the steps by the node
where they begin, once. From then on, rounds shuffle no steps in memory, but those in files. The
steps of a node with very many are divided further (salted). No row passes through Python.

A round that reads steps from workers' disks reads whole parts of them. With a directory that the
driver and all workers reach, steps that do not fit into memory are kept there instead, as files of
Parquet. Spark then reads only the pages of a file that may have one of few nodes.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, Row, SparkSession, functions

from backstory_lake.engine import Join
from backstory_lake.errors import LakeError, first_line
from backstory_lake.flows import BROADCAST, JUMPS, STEPS
from backstory_lake.lake import Lake
from backstory_lake.printing import Answer
from backstory_lake.tables import EDGES

from .tables import open_views

#: Rounds between two checkpoints. A plan grows with each round, and a checkpoint cuts it.
CHECKPOINT = 4
#: Without this property, a job checkpoints only the rows that it ends with. The nodes are no such
#: rows, so their plan would have all earlier rounds.
ANCESTORS = "spark.checkpoint.checkpointAllMarkedAncestors"
#: Edges of a task.
PART = 1_000_000
#: Steps of one node that stay together.
HOT = 50_000
#: Nodes of a frontier that are written into the query.
FEW = 64
#: Bytes of memory that the steps of an edge take: `docs/scale.md` has the measurement.
KEPT = 106
#: Bytes of a group of rows in a file of steps. A group is read as a whole, or not at all, unless
#: its index of pages says more.
GROUP = 8 << 20
#: In a text of `_written`, the place for the name of the steps.
_MANY = "{many}"
#: The most values of a list that Spark compares with the bounds of a batch of kept rows. The second
#: is for pages of files.
COMPARED = "spark.sql.optimizer.inSetConversionThreshold"
COMPARED_IN_FILES = "spark.sql.parquet.pushdown.inFilterThreshold"

#: How the lines of an error of Java begin that have a reason. The last kind is the most exact one.
CAUSES = (": ", "Caused by: ")
#: The end of a data file's name. Names of Java's classes have the same letters.
DATA_FILE = re.compile(r"\.parquet(?![\w.])")

#: Errors of a session that ended, or of the connection to its driver.
GONE = (Py4JError, PySparkException, OSError)


class SparkEngine:
    """A session of its own, with the views of one snapshot of a lake.

    `scratch` is an address of Hadoop's, such as `file:///mnt/shared`, that the driver and all
    workers reach. A plain path means Hadoop's default file system.
    """

    def __init__(self, session: SparkSession, lake: Lake, scratch: str | None = None) -> None:
        self.lake = lake
        self._scratch = scratch
        #: Its names differ from those of the given session, and its workers are the same.
        self.session = session.newSession()
        # Spark 3.5 loses columns of the constraints of checkpoints: "key not found" in a union.
        self.session.conf.set("spark.sql.constraintPropagation.enabled", "false")
        self.session.conf.set(COMPARED, FEW)
        self.session.conf.set(COMPARED_IN_FILES, FEW)
        edges = _edges(lake)
        self._parts = _parts(self.session, edges)
        self._use_files = scratch is not None and KEPT * edges > _memory(self.session)
        #: The names of steps that are kept in files, and all directories that `close` removes.
        self._in_files: set[str] = set()
        self._directories: list[str] = []
        #: The rows that workers keep, by name.
        self._kept: dict[str, DataFrame] = {}
        self._salted: set[str] = set()
        #: Few rows as text, until others are kept: see `_written`.
        self._few: dict[str, str] = {}
        self._opened()

    def _opened(self) -> None:
        self._persist("lake_forgetful", open_views(self.session, self.lake)["lake_forgetful"])

    def keep_rounds(self, directory: str) -> None:
        """Keeps rounds in a directory that all workers reach, so that any of them may die.

        `directory` is an address as `scratch` is. Spark makes a directory of its own in it, which
        `close` removes. The setting holds for all engines of the session.
        """
        context = self.session.sparkContext
        context.setCheckpointDir(directory)
        made = context.getCheckpointDir()
        if made:
            self._directories.append(made)

    def close(self) -> None:
        """Frees the workers' memory, and removes files. The session may have other engines.

        It raises no error, which would hide that of a question. A message names what stays.
        """
        for rows in self._kept.values():
            # Without a session, its workers have no rows.
            with suppress(*GONE):
                rows.unpersist()
        self._kept.clear()
        self._salted.clear()
        self._few.clear()
        for directory in self._directories:
            try:
                self._remove(directory)
            except GONE as error:
                print(
                    f"backstory-lake: cannot remove {directory}: {first_line(error)}; remove it",
                    file=sys.stderr,
                )
        self._directories.clear()
        self._in_files.clear()

    def steps(self, direction: str) -> tuple[str, str]:
        names = (f"lake_steps_{direction}", f"lake_jumps_{direction}")
        for name, texts in zip(names, (STEPS, JUMPS)):
            if name not in self._kept and name not in self._in_files:
                # A lake has many small files, which are no good tasks.
                rows = self.session.sql(texts[direction]).coalesce(self._parts)
                self._keep_steps(name, rows.sortWithinPartitions("here"))
        return names

    def view(self, name: str, sql: str) -> None:
        self.session.sql(sql).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str) -> int:
        rows = self._cut(_renamed(self.session.sql(sql)))
        # This executes the query.
        count = rows.count()
        rows.createOrReplaceTempView(name)
        self._few.clear()
        return count

    def renew(self, name: str, sql: str, turn: int) -> None:
        rows = _renamed(self.session.sql(sql))
        if turn % CHECKPOINT == 0:
            # Each round may add parts of its own.
            rows = self._cut(rows.coalesce(2 * self.session.sparkContext.defaultParallelism))
        rows.createOrReplaceTempView(name)
        self._few.clear()

    def index(self, name: str, sql: str, key: str) -> None:
        # Spark does not find kept rows again whose query has a correlated subquery.
        rows = self._leaf(self.session.sql(sql))
        self._persist(name, rows.repartition(self._parts, key))

    def join(self, few: str, count: int, many: str) -> Join:
        if 0 < count <= FEW:
            if few not in self._few:
                self._few[few] = self._written(self.session.sql(f"SELECT * FROM {few} f"))
            if self._few[few]:
                return Join("", self._few[few].replace(_MANY, many))
        if count <= BROADCAST:
            return Join("/*+ BROADCAST(r) */", f"{few} r JOIN {many} s ON s.here = r.node")
        self._salt(many)
        copies = f"""(SELECT /*+ BROADCAST(h) */ f.*,
    explode(sequence(0, coalesce(h.salts, 1) - 1)) AS salt
  FROM {few} f LEFT JOIN {many}_hot h ON h.node = f.node)"""
        return Join("", f"{copies} r JOIN {many} s ON s.here = r.node AND s.salt = r.salt")

    def _written(self, few: DataFrame) -> str:
        """Few rows, joined with the steps `_MANY`. Empty without a row.

        Spark compares the list of nodes with the bounds of each batch of steps.
        """
        types = {field.name: field.dataType.simpleString() for field in few.schema}
        rows = few.collect()
        nodes = ", ".join(str(node) for node in sorted({row["node"] for row in rows}))

        def value(row: Row, name: str) -> str:
            text = self.quoted(row[name]) if isinstance(row[name], str) else repr(row[name])
            return f"CAST({'NULL' if row[name] is None else text} AS {types[name]})"

        listed = ", ".join(f"({', '.join(value(row, name) for name in types)})" for row in rows)
        if not rows:
            return ""
        return (
            f"(SELECT * FROM VALUES {listed} AS f({', '.join(types)})) r "
            f"JOIN {_MANY} s ON s.here = r.node AND s.here IN ({nodes})"
        )

    def _salt(self, many: str) -> None:
        """Divides steps by the node where they begin, and by a salt for nodes with very many."""
        if many in self._salted:
            return
        hot = (
            f"SELECT here AS node, CAST(ceil(count(*) / {HOT}) AS INT) AS salts FROM {many} "
            f"GROUP BY here HAVING count(*) > {HOT}"
        )
        self._persist(f"{many}_hot", self.session.sql(hot))
        salt = "coalesce(pmod(hash(s.there), h.salts), 0)"
        rows = self.session.sql(
            f"SELECT /*+ BROADCAST(h) */ s.*, {salt} AS salt FROM {many} s "
            f"LEFT JOIN {many}_hot h ON h.node = s.here"
        )
        # Fewer parts than those of a shuffle would be divided again in each round.
        parts = max(self._parts, int(self.session.conf.get("spark.sql.shuffle.partitions")))
        rows = rows.repartition(parts, "here", "salt").sortWithinPartitions("here")
        self._keep_steps(many, rows)
        self._salted.add(many)

    def _keep_steps(self, name: str, rows: DataFrame) -> None:
        """Keeps sorted steps: in the workers' memory, or in files if they do not fit there."""
        if not self._use_files:
            self._persist(name, rows)
            return
        # Rows of earlier rounds may still be made from the former files: all stay to the end.
        directory = f"{self._scratch}/backstory-{name}-{uuid.uuid4().hex}"
        self._directories.append(directory)
        written = _written_rows(rows, directory)
        # Without the schema, a directory without files is an error of another kind.
        kept = self.session.read.schema(rows.schema).parquet(directory)
        # Workers write to disks of their own, and the driver lists only the files that it reaches.
        found = _found_rows(kept)
        if found != written:
            raise LakeError(
                f"{self._scratch} is not shared by all workers: they wrote {written} steps, and "
                f"{'not all files' if found is None else found} could be read; name a directory "
                "that the driver and all workers reach"
            )
        kept.createOrReplaceTempView(name)
        self._in_files.add(name)

    def _remove(self, directory: str) -> None:
        path = self.session._jvm.org.apache.hadoop.fs.Path(directory)
        path.getFileSystem(self.session._jsparkSession.sessionState().newHadoopConf()).delete(
            path, True
        )

    def _persist(self, name: str, rows: DataFrame) -> None:
        former = self._kept.get(name)
        self._kept[name] = rows.persist()
        if former is not None:
            # The new rows may be made from the former ones.
            rows.count()
            former.unpersist()
        self._alone(rows).createOrReplaceTempView(name)

    def _alone(self, kept: DataFrame) -> DataFrame:
        """Kept rows without the plan that they were made by.

        Spark looks for kept rows by comparing plans, in each query. The steps have large plans.
        Spark 3.5 loses the columns by which rows are sorted, if they are joined with themselves:
        "key not found". So the plan does not have these columns. Scans know the order all the same.
        """
        plan = kept._jdf.queryExecution().withCachedData()
        unsorted = plan.outputOrdering().take(0)
        relation = plan.copy(plan.output(), plan.cacheBuilder(), unsorted)
        # A copy has no size, by which Spark chooses how to join.
        getattr(relation, "statsOfPlanToCache_$eq")(plan.statsOfPlanToCache())
        made = self.session._jvm.org.apache.spark.sql.Dataset.ofRows(
            self.session._jsparkSession, relation
        )
        return DataFrame(made, self.session)

    def _cut(self, rows: DataFrame) -> DataFrame:
        """Keeps the rows of a round. A worker that dies loses those that only it has.

        A checkpoint of Spark 3.5 has the estimated size of its plan. Estimates of joins are
        products, so the digits of one double in each round: after 25 rounds they fill the driver's
        memory. Rows that are made from the checkpoint's own have no estimate.
        """
        # Spark reads the property when it makes the rows that the checkpoint is of.
        with self._local(ANCESTORS, "true"):
            if self.session.sparkContext.getCheckpointDir():
                kept = rows.checkpoint(eager=False)
            else:
                kept = rows.localCheckpoint(eager=False)
        return self._leaf(kept)

    def _leaf(self, rows: DataFrame) -> DataFrame:
        """The rows without the plan that makes them."""
        made = self.session._jsparkSession.internalCreateDataFrame(
            rows._jdf.queryExecution().toRdd(), rows._jdf.schema(), False
        )
        return DataFrame(made, self.session)

    @contextmanager
    def _local(self, name: str, value: str) -> Iterator[None]:
        """Sets a property of the jobs of this thread."""
        context = self.session.sparkContext
        former = context.getLocalProperty(name)
        # None removes it; pyspark's types do not say so.
        context.setLocalProperty(name, value)
        try:
            yield
        finally:
            context.setLocalProperty(name, former)  # type: ignore[arg-type]

    def quoted(self, text: str) -> str:
        # Two quotes in a text of Spark are no quote.
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def ask(self, sql: str) -> Answer:
        found = self.session.sql(sql)
        return Answer(found.columns, map(tuple, found.toLocalIterator()))

    def save(self, sql: str, directory: Path) -> None:
        self.session.sql(sql).write.parquet(directory.absolute().as_uri())

    def load(self, name: str, directory: Path) -> None:
        self.session.read.parquet(directory.absolute().as_uri()).createOrReplaceTempView(name)

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Explains errors. Spark's configuration bounds time and memory."""
        try:
            yield
        except (Py4JError, PySparkException) as error:
            raise LakeError(f"Spark could not answer: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Why Spark could not answer, and what to do.

    An error of Java begins with the call from Python. Its causes follow, the first one last.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line.removeprefix(mark) for mark in CAUSES for line in lines if line.startswith(mark)]
    for cause in reversed(causes):
        if DATA_FILE.search(cause):
            return f"{first_line(Exception(cause))}; restore this data file"
    last = Exception(causes[-1]) if causes else error
    remedy = "see the log of its driver, and compare the data files: `backstory-lake check`"
    return f"{first_line(last)}; {remedy}"


def _written_rows(rows: DataFrame, directory: str) -> int:
    """Writes rows into files, and counts them meanwhile."""
    counted = Observation()
    observed = rows.observe(counted, functions.count(functions.lit(1)).alias("rows"))
    observed.write.option("parquet.block.size", GROUP).parquet(directory)
    return int(counted.get["rows"])


def _found_rows(kept: DataFrame) -> int | None:
    """The number of rows of files, as their ends have it. `None` if a worker lacks a file."""
    try:
        return kept.count()
    except (Py4JError, PySparkException) as error:
        if "FileNotFoundException" in str(error):
            return None
        raise


def _renamed(rows: DataFrame) -> DataFrame:
    """The rows, whose columns have identities of their own.

    Rows that are made from each other share the identities of columns, and Spark 3.5 cannot join
    some of them. New identities come before a checkpoint: Spark knows how to join one with itself.
    """
    return rows.toDF(*rows.columns)


def _edges(lake: Lake) -> int:
    snapshot = lake.table(EDGES).current_snapshot()
    return int((snapshot and snapshot.summary and snapshot.summary["total-records"]) or 0)


def _parts(session: SparkSession, edges: int) -> int:
    """The tasks of a round: enough for all cores, and each with rows that fit into memory."""
    return max(2 * session.sparkContext.defaultParallelism, -(-edges // PART))


def _memory(session: SparkSession) -> int:
    """Bytes of memory that all workers have for kept rows."""
    status = session.sparkContext._jsc.sc().getExecutorMemoryStatus()
    found, stores = [], status.values().iterator()
    while stores.hasNext():
        found.append(int(stores.next()._1()))
    # The driver of a cluster keeps no rows, and has a store, too.
    return sum(found) if len(found) == 1 else sum(found) - min(found)
