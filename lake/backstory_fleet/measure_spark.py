"""Asks Spark the questions of `measure`, on a cluster of this machine.

Spark's own log of events tells how many bytes each question shuffled, and how evenly. It is read
after each question.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_spark import Lineage
from backstory_spark.cluster import cluster, session

from .measure import WORKER_MEMORY, Asked, Measurement, sizes, timed


def spark(lake: Lake, asked: list[Asked], workers: int) -> Iterator[Measurement]:
    """Asks Spark with some workers of one core each. A first question about origins is asked twice:
    a first question about uses can take an hour, and includes what the first one does once."""
    jar = os.environ.get("BACKSTORY_ICEBERG_JAR")
    if not jar:
        raise LakeError("BACKSTORY_ICEBERG_JAR must name the file iceberg-spark-runtime-*.jar")
    with (
        tempfile.TemporaryDirectory(prefix="backstory-events-") as log,
        tempfile.TemporaryDirectory(prefix="backstory-steps-") as steps,
    ):
        with cluster(workers, 1, f"{WORKER_MEMORY + 500}m") as running:
            with session(running.address, jar, _options(Path(log), workers)) as opened:
                events = EventLog(Path(log))
                yield from _ask(opened, lake, asked, workers, Path(steps), events)


def _options(log: Path, workers: int) -> dict[str, str]:
    return {
        "spark.executor.memory": f"{WORKER_MEMORY}m",
        "spark.sql.shuffle.partitions": str(4 * workers),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
    }


def _ask(
    opened: Any, lake: Lake, asked: list[Asked], workers: int, scratch: Path, log: EventLog
) -> Iterator[Measurement]:
    size = sizes(lake)[0]
    lineage, seconds, _ = timed(lambda: Lineage(opened, lake, scratch.as_uri()))
    start = Measurement("spark", "open", size.edges, size.runs, workers, size.files, seconds)
    # The first question about lineage also finds where runs meet, and fills the workers' memory.
    first = [
        Asked("first question", one.files, one.direction)
        for one in asked[:1]
        if not one.sql and one.direction == "back"
    ]
    for one in [*first, *asked]:
        opened.sparkContext.setJobGroup(one.name, one.name)

        def answer(one: Asked = one) -> int:
            if one.sql:
                return int(lineage.engine.session.sql(one.sql).count())
            return int(lineage.lineage(one.files, one.direction).count())

        links, seconds, _ = timed(answer)
        opened.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        shuffled, skew, cpu = log.read().get(one.name, (0, 0.0, 0.0))
        yield Measurement(
            "spark", one.name, size.edges, size.runs, workers, len(one.files), seconds, cpu,
            0 if one.sql else len(lineage.rounds), links, shuffled=shuffled, skew=skew,
        )  # fmt: skip
    kept = opened.sparkContext._jsc.sc().getRDDStorageInfo()
    start.bytes = sum(int(one.memSize()) + int(one.diskSize()) for one in kept)
    start.bytes += sum(one.stat().st_size for one in scratch.rglob("*.parquet"))
    yield start


class EventLog:
    """Spark's log of events in a directory, which grows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: TextIO | None = None
        self._groups: dict[int, str] = {}
        self._reads: dict[int, list[int]] = defaultdict(list)
        self._used: dict[int, int] = defaultdict(int)
        #: The beginning of a line that Spark has not written to its end.
        self._part = ""

    def read(self) -> dict[str, tuple[int, float, float]]:
        """For each question: the bytes that were shuffled, the skew of the largest shuffle, and the
        seconds of all cores."""
        for file in [] if self._file else sorted(self._directory.iterdir()):
            # Spark renames it in the end.
            self._file = file.open()
        for line in self._file or ():
            self._part += line
            if line.endswith("\n"):
                self._take(json.loads(self._part))
                self._part = ""
        found: dict[str, tuple[int, float, float]] = {}
        for name in set(self._groups.values()):
            stages = [stage for stage, group in self._groups.items() if group == name]
            largest = max((self._reads[stage] for stage in stages), key=sum, default=[])
            mean = sum(largest) / len(largest) if largest else 0
            skew = max(largest) / mean if mean else 0.0
            cpu = sum(self._used[stage] for stage in stages) / 1e9
            shuffled = sum(sum(self._reads[stage]) for stage in stages)
            found[name] = (shuffled, round(skew, 2), round(cpu, 3))
        return found

    def _take(self, event: dict[str, Any]) -> None:
        if event["Event"] == "SparkListenerJobStart":
            name = (event.get("Properties") or {}).get("spark.jobGroup.id")
            self._groups |= {stage: name for stage in event["Stage IDs"] if name}
        elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            read = event["Task Metrics"]["Shuffle Read Metrics"]
            size = read["Remote Bytes Read"] + read["Local Bytes Read"]
            self._reads[event["Stage ID"]].append(size)
            self._used[event["Stage ID"]] += event["Task Metrics"]["Executor CPU Time"]
