"""Lineage on a real cluster of Spark: a master and two workers, one of which dies.

The tests need pyspark, Java 17 and Iceberg's library (`BACKSTORY_ICEBERG_JAR`).
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import command
from invented import coincidences
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
    from backstory_spark import Lineage
    from backstory_spark.cluster import cluster, session

    fleet_of(recorded, lake, seed=4, size=Size(machines=3, days=2))
    reference = Reference(lake)
    roots = subjects(reference, 2)
    expected = reference.links(roots, "back", None, True)
    with cluster(workers=2, cores=1, memory="1g") as running:
        options = {"spark.executor.memory": "800m", "spark.sql.shuffle.partitions": "2"}
        with session(running.address, JAR, options, log="OFF") as opened:
            opened.sparkContext.setCheckpointDir((tmp_path / "rounds").as_uri())
            lineage = Lineage(opened, Lake.open(str(lake)))
            join, joins, killed = lineage.engine.join, [0], []

            def kill_then_join(*given: Any) -> Any:
                joins[0] += 1
                # Two joins are a round.
                if joins[0] > 4 and not killed:
                    killed.append(running.kill(0))
                return join(*given)

            monkeypatch.setattr(lineage.engine, "join", kill_then_join)
            keys = Compared.keys(reference, roots)
            found = lineage.lineage(keys, "back").collect()
            assert killed == [signal.SIGKILL]
            assert {reference._link(tuple(row)) for row in found} == expected
            assert len(expected) > 5 and len(lineage.rounds) > 2


def test_a_worker_that_dies_changes_no_answer_of_the_command_with_a_directory_for_rounds(
    recorded: Path, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backstory_spark import SparkEngine, cluster

    fleet_of(recorded, lake, seed=4, size=Size(machines=3, days=2))
    reference = Reference(lake)
    keys = Compared.keys(reference, subjects(reference, 2))
    files = [word for key in keys for word in ("--file", str(key))]
    words = ["lineage", "--lake", str(lake), "--json", *files]
    expected = json.loads(command(*words).stdout)["links"]
    session, join, joins, killed = cluster.session, SparkEngine.join, [0], []

    def small(master: str, jar: str, log: str) -> Any:
        options = {"spark.executor.memory": "800m", "spark.sql.shuffle.partitions": "2"}
        return session(master, jar, options, log)

    with cluster.cluster(workers=2, cores=1, memory="1g") as running:

        def kill_then_join(*given: Any) -> Any:
            joins[0] += 1
            # Two joins are a round.
            if joins[0] > 4 and not killed:
                killed.append(running.kill(0))
            return join(*given)

        monkeypatch.setattr(cluster, "session", small)
        monkeypatch.setattr(SparkEngine, "join", kill_then_join)
        kept = tmp_path / "rounds"
        more = ["--spark", running.address, "--jar", JAR, "--checkpoint", str(kept)]
        ended = command(*words, *more)
    assert killed == [signal.SIGKILL]
    assert ended.returncode == 0, ended.stderr
    rows = [
        sorted(map(json.dumps, links)) for links in (json.loads(ended.stdout)["links"], expected)
    ]
    assert rows[0] == rows[1] and len(expected) > 5
    # Spark made the directory, and the command removed what was in it.
    assert list(kept.iterdir()) == []


def test_the_command_has_the_same_answer_from_duckdb_and_spark(lake: Path) -> None:
    coincidences(309).written(lake)
    words = ("lineage", "--lake", str(lake), "--path", "a", "--json", "--hubs", "1")
    ended = command(*words, "--spark", "local[2]", "--jar", JAR)
    assert ended.returncode == 0, ended.stderr
    found, expected = json.loads(ended.stdout), json.loads(command(*words).stdout)
    for part in ("links", "hubs"):
        rows = [sorted(map(json.dumps, answer[part])) for answer in (found, expected)]
        assert rows[0] == rows[1] and rows[0], part
    ended = command(*words, "--spark", "local[2]", "--jar", "/nowhere.jar")
    assert ended.returncode == 2 and "download" in ended.stderr
