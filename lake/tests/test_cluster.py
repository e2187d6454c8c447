"""Lineage on a real cluster of Spark: a master and two workers, one of which dies.

The tests need pyspark, Java 17 and Iceberg's library (`BACKSTORY_ICEBERG_JAR`).
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from reference import Reference
from test_fleet_lineage import fleet_of, subjects
from test_lineage import Compared

from backstory_fleet.fleet import Size
from backstory_lake.lake import Lake

JAR = os.environ.get("BACKSTORY_ICEBERG_JAR", "")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not JAR, reason="BACKSTORY_ICEBERG_JAR names no library"),
]


def test_a_worker_that_dies_between_two_rounds_changes_no_link(
    recorded: Path, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    from backstory_spark import Lineage, configured
    from backstory_spark.cluster import cluster

    fleet_of(recorded, lake, seed=4, size=Size(machines=3, days=2))
    reference = Reference(lake)
    roots = subjects(reference, 2)
    expected = reference.links(roots, "back", None, True)
    with cluster(workers=2, cores=1, memory="1g") as running:
        builder = configured(SparkSession.builder.master(running.address), JAR)
        options = {
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "800m",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
        }
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            session.sparkContext.setCheckpointDir((tmp_path / "rounds").as_uri())
            lineage = Lineage(session, Lake.open(str(lake)))
            following, killed = lineage._next, []

            def kill_then_follow(*given: Any) -> Any:
                if len(lineage.rounds) == 2 and not killed:
                    killed.append(running.kill(0))
                return following(*given)

            monkeypatch.setattr(lineage, "_next", kill_then_follow)
            keys = Compared.keys(reference, roots)
            found = lineage.lineage(keys, "back").collect()
            assert killed == [signal.SIGKILL]
            assert {reference._link(tuple(row)) for row in found} == expected
            assert len(expected) > 5 and len(lineage.rounds) > 2
        finally:
            session.stop()
