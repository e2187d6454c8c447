"""Gives Spark the tables of a lake, as they are at one moment.

Iceberg's library loads each table from its metadata file. So all questions of a `Lineage` see one
snapshot, and none changes the lake. The lake's catalog may be any that PyIceberg knows.
"""

from __future__ import annotations

from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession

from backstory_lake.flows import VIEWS
from backstory_lake.lake import Lake
from backstory_lake.questions import snapshot
from backstory_lake.reading import tasks
from backstory_lake.tables import TABLES

#: Bounds on the driver's memory. Each round is several executions, and Spark's status store keeps
#: their plans, stages and tasks. With its own bounds, a question of many rounds over 10^7 edges
#: fills a heap of 1 GB.
REMEMBERED = {
    "spark.sql.ui.retainedExecutions": "4",
    "spark.ui.retainedJobs": "16",
    "spark.ui.retainedStages": "16",
    "spark.ui.retainedTasks": "1000",
    # The text of a plan repeats the views within it.
    "spark.sql.maxPlanStringLength": "16384",
    # The files of a shuffle stay until the driver has collected its garbage. Within the default of
    # 30 minutes, a hundred large rounds fill a disk.
    "spark.cleaner.periodicGC.interval": "2min",
}


def configured(builder: SparkSession.Builder, jar: str) -> SparkSession.Builder:
    """Adds Iceberg's library to a session: the file `iceberg-spark-runtime-*.jar`. Bounds what the
    driver remembers of earlier rounds."""
    for name, value in REMEMBERED.items():
        builder = builder.config(name, value)
    return builder.config("spark.jars", jar).config("spark.ui.showConsoleProgress", "false")


def open_views(session: SparkSession, lake: Lake) -> dict[str, DataFrame]:
    """Makes views of the lake's tables, and those that lineage follows."""
    found = snapshot(lake, _metadata)
    for table in TABLES:
        if table.name in found:
            rows = session.read.format("iceberg").load(found[table.name])
        else:
            columns = ", ".join(f"{name} {kind}" for _, name, kind in table.columns)
            # A lake of an older writer lacks the table.
            rows = session.createDataFrame([], columns)
        rows.createOrReplaceTempView(f"{table.name}_table")
    session.sql(
        "SELECT * FROM runs_table WHERE NOT coalesce(forgotten, false)"
    ).createOrReplaceTempView("runs")
    for name in ("processes", "files", "edges", "derivations", "informs", "connections"):
        # Only rows of published runs count.
        session.sql(
            f"SELECT t.* FROM {name}_table t LEFT SEMI JOIN runs r "
            "ON r.number = t.number AND r.shipment = t.shipment"
        ).createOrReplaceTempView(name)
    made = {}
    for name, text in VIEWS.items():
        made[name] = session.sql(text)
        made[name].createOrReplaceTempView(name)
    return made


def _metadata(_: Lake, table: Table) -> str:
    # Refuses a manifest that names files outside of the lake.
    tasks(table)
    return str(table.metadata_location)
