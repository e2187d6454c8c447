"""Asks Spark the questions of `measure`, on a cluster of this machine.

Spark's own log of events tells how many bytes each question shuffled, and how evenly.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_spark import Lineage
from backstory_spark.cluster import cluster, session

from .measure import Asked, Measurement, sizes, timed

#: MB of a worker.
MEMORY = 1500


def spark(lake: Lake, asked: list[Asked], workers: int) -> Iterator[Measurement]:
    """Asks Spark with some workers of one core each. The first question is asked twice."""
    jar = os.environ.get("BACKSTORY_ICEBERG_JAR")
    if not jar:
        raise LakeError("BACKSTORY_ICEBERG_JAR must name the file iceberg-spark-runtime-*.jar")
    with tempfile.TemporaryDirectory(prefix="backstory-events-") as log:
        with cluster(workers, 1, f"{MEMORY + 500}m") as running:
            with session(running.address, jar, _options(Path(log), workers)) as opened:
                found = _ask(opened, lake, asked, workers)
        shuffles = read_events(Path(log))
    for one in found:
        one.shuffled, one.skew, one.cpu = shuffles.get(one.question, (0, 0.0, 0.0))
        yield one


def _options(log: Path, workers: int) -> dict[str, str]:
    return {
        "spark.executor.memory": f"{MEMORY}m",
        "spark.sql.shuffle.partitions": str(4 * workers),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
    }


def _ask(opened: Any, lake: Lake, asked: list[Asked], workers: int) -> list[Measurement]:
    size = sizes(lake)[0]
    lineage, seconds, _ = timed(lambda: Lineage(opened, lake))
    start = Measurement("spark", "open", size.edges, size.runs, workers, size.files, seconds)
    found = [start]
    # The first question also finds where runs meet, and fills the workers' memory.
    first = Asked("first question", asked[0].files, asked[0].direction)
    for one in [first, *asked]:
        opened.sparkContext.setJobGroup(one.name, one.name)

        def answer(one: Asked = one) -> int:
            if one.sql:
                return int(lineage.engine.session.sql(one.sql).count())
            return int(lineage.lineage(one.files, one.direction).count())

        links, seconds, _ = timed(answer)
        rounds = 0 if one.sql else len(lineage.rounds)
        found.append(
            Measurement(
                "spark", one.name, size.edges, size.runs, workers, len(one.files), seconds,
                rounds=rounds, links=links,
            )
        )  # fmt: skip
    kept = opened.sparkContext._jsc.sc().getRDDStorageInfo()
    start.bytes = sum(int(one.memSize()) + int(one.diskSize()) for one in kept)
    return found


def read_events(log: Path) -> dict[str, tuple[int, float, float]]:
    """For each question: the bytes that were shuffled, the skew of the largest shuffle, and the
    seconds of all cores."""
    groups: dict[int, str] = {}
    reads: dict[int, list[int]] = defaultdict(list)
    used: dict[int, int] = defaultdict(int)
    for file in sorted(log.iterdir()):
        with file.open() as lines:
            for line in lines:
                event = json.loads(line)
                kind = event["Event"]
                if kind == "SparkListenerJobStart":
                    name = (event.get("Properties") or {}).get("spark.jobGroup.id")
                    groups |= {stage: name for stage in event["Stage IDs"] if name}
                elif kind == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                    read = event["Task Metrics"]["Shuffle Read Metrics"]
                    size = read["Remote Bytes Read"] + read["Local Bytes Read"]
                    reads[event["Stage ID"]].append(size)
                    used[event["Stage ID"]] += event["Task Metrics"]["Executor CPU Time"]
    found: dict[str, tuple[int, float, float]] = {}
    for name in set(groups.values()):
        stages = [reads[stage] for stage, group in groups.items() if group == name]
        largest = max(stages, key=sum, default=[])
        mean = sum(largest) / len(largest) if largest else 0
        skew = max(largest) / mean if mean else 0.0
        cpu = sum(used[stage] for stage, group in groups.items() if group == name) / 1e9
        found[name] = (sum(map(sum, stages)), round(skew, 2), round(cpu, 3))
    return found
