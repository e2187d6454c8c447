"""Lineage on Spark has the links of `backstory of` and `uses`, edge by edge.

The tests need pyspark, Java 17 and Iceberg's library (`BACKSTORY_ICEBERG_JAR`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Machine, command
from reference import Reference
from test_fleet_lineage import agree, fleet_of
from test_lineage import Compared, Link, Node, compare, recorded_fleet
from test_names import agree_on_coincidences, crosses, two_machines

from backstory_fleet.fleet import Size
from backstory_lake.errors import LakeError, MisuseError
from backstory_lake.lake import Lake

JAR = os.environ.get("BACKSTORY_ICEBERG_JAR", "")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not JAR, reason="BACKSTORY_ICEBERG_JAR names no library"),
]


@pytest.fixture(scope="module")
def session() -> Iterator[object]:
    """A session with two workers in this process."""
    from pyspark.sql import SparkSession

    from backstory_spark import configured

    builder = configured(SparkSession.builder.master("local[2]"), JAR)
    # Some hundred edges need neither a plan that adapts nor compiled code.
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()


class ComparedSpark(Compared):
    """A lake as Spark sees it."""

    def __init__(self, lake: Path, session: object) -> None:
        from backstory_spark import Lineage

        super().__init__(lake)
        self.lineage = Lineage(session, Lake.open(str(lake)))  # type: ignore[arg-type]

    def links(
        self, roots: list[Node], direction: str, bound: int | None, possible: bool
    ) -> set[Link]:
        found = self.lineage.lineage(self.keys(roots), direction, bound, possible)
        return {self._link(tuple(row)) for row in found.collect()}


@pytest.mark.parametrize("seed", range(20, 22))
def test_lineage_on_spark_has_the_links_of_of_and_uses(
    machine: Machine, lake: Path, session: object, seed: int
) -> None:
    recorded_fleet(machine, seed, runs=4)
    assert compare(machine, lake, "a", lambda: ComparedSpark(lake, session)) > 50


def test_lineage_on_spark_is_that_of_the_reference_for_a_fleet(
    recorded: Path, lake: Path, session: object
) -> None:
    fleet_of(recorded, lake, seed=9, size=Size(machines=3, days=2))
    engine, reference = ComparedSpark(lake, session), Reference(lake)
    assert agree(engine, reference, 2, each=False, options=((None, True), (2, False))) > 200


@pytest.mark.parametrize("seed", range(200, 202))
def test_lineage_on_spark_is_that_of_the_reference_for_coincidences(
    lake: Path, session: object, seed: int
) -> None:
    engine = lambda made: ComparedSpark(made, session)  # noqa: E731
    assert agree_on_coincidences(lake, seed, engine, each=False) > 20


def test_lineage_on_spark_crosses_a_connection_of_ssh_as_of_and_uses_do(
    machine: Machine, lake: Path, session: object
) -> None:
    two_machines(machine, 9, 1).ship(lake)
    assert compare(machine, lake, "a", lambda: ComparedSpark(lake, session)) > 10
    assert crosses(lake, "socket") >= 2


def test_a_wrong_direction_and_a_damaged_lake_are_clear_errors_on_spark(
    machine: Machine, lake: Path, session: object
) -> None:
    from backstory_spark import Lineage

    machine.record("sort in > out")
    machine.ship(lake)
    opened = Lake.open(str(lake))
    with pytest.raises(MisuseError, match="back or forth, not sideways"):
        Lineage(session, opened).lineage([1], "sideways")  # type: ignore[arg-type]
    next((lake / "backstory" / "files" / "metadata").glob("*-m0.avro")).write_bytes(b"no avro")
    with pytest.raises(LakeError, match="restore it"):
        Lineage(session, opened)  # type: ignore[arg-type]
    assert command("query", "--lake", str(lake), "FROM files").returncode == 1
