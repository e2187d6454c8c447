"""Lineage on Spark has the links of `backstory of` and `uses`, edge by edge.

The tests need pyspark, Java 17 and Iceberg's library (`BACKSTORY_ICEBERG_JAR`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Machine, command
from invented import Invented, coincidences
from reference import Reference
from test_closure import EXTENDED, check_shipments
from test_components import check_components, check_histories
from test_fleet_lineage import agree, fleet_of
from test_hubs import ComparedRounds, check_hubs, some_files
from test_lineage import Compared, Link, Node, compare, recorded_fleet
from test_names import agree_on_coincidences, crosses, two_machines

from backstory_fleet.fleet import Size
from backstory_lake import rounds
from backstory_lake.errors import LakeError, MisuseError
from backstory_lake.lake import Lake
from backstory_lake.storage import local

JAR = os.environ.get("BACKSTORY_ICEBERG_JAR", "")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not JAR, reason="BACKSTORY_ICEBERG_JAR names no library"),
]


@contextmanager
def spark() -> Iterator[object]:
    """A session with two workers in this process."""
    from backstory_spark import cluster

    # Some hundred edges need no compiled code.
    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.memory": "2g",
    }
    with cluster.session("local[2]", JAR, options) as made:
        yield made


@pytest.fixture(scope="module")
def lasting() -> Iterator[object]:
    """A session of all tests."""
    with spark() as made:
        yield made


@pytest.fixture
def session(lasting: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The session, in which no test leaves rows to the next one."""
    from backstory_spark import SparkEngine

    made: list[Any] = []
    opened = SparkEngine._opened

    def noted(engine: Any) -> None:
        made.append(engine)
        opened(engine)

    monkeypatch.setattr(SparkEngine, "_opened", noted)
    yield lasting
    for engine in made:
        engine.close()
    kept = lasting._jsparkSession.sharedState().cacheManager()
    assert kept.isEmpty()


class ComparedSpark(Compared):
    """A lake as Spark sees it."""

    def __init__(self, lake: Path, session: object, scratch: Path | None = None) -> None:
        from backstory_spark import Lineage

        super().__init__(lake)
        directory = scratch and scratch.as_uri()
        self.lineage = Lineage(session, Lake.open(str(lake)), directory)  # type: ignore[arg-type]

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


def test_steps_that_do_not_fit_into_memory_are_kept_in_files_until_the_end(
    lake: Path,
    session: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from backstory_spark import engine

    monkeypatch.setattr(engine, "KEPT", 1 << 40)
    # Larger frontiers are shuffled with the steps.
    monkeypatch.setattr(engine, "BROADCAST", 2)
    monkeypatch.setattr(engine, "FEW", 1)
    made: list[ComparedSpark] = []

    def compared(lake: Path) -> ComparedSpark:
        made.append(ComparedSpark(lake, session, tmp_path / "steps"))
        return made[-1]

    assert agree_on_coincidences(lake, 200, compared, each=False) > 20
    kept = {one.name.rsplit("-", 1)[0] for one in (tmp_path / "steps").iterdir()}
    assert {"backstory-lake_steps_back", "backstory-lake_steps_forth"} <= kept
    remove = engine.SparkEngine._remove
    first = made[-1].lineage.engine._directories[0]

    def refused(self: Any, directory: str) -> None:
        if directory == first:
            raise ConnectionRefusedError("the session is gone")
        remove(self, directory)

    # One directory that stays does not keep the others.
    monkeypatch.setattr(engine.SparkEngine, "_remove", refused)
    made[-1].lineage.close()
    assert [str(one) for one in (tmp_path / "steps").iterdir()] == [local(first)]
    assert f"cannot remove {first}: the session is gone" in capsys.readouterr().err


def test_steps_kept_in_files_that_not_all_workers_share_are_an_error(
    lake: Path, session: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backstory_spark import engine

    monkeypatch.setattr(engine, "KEPT", 1 << 40)
    written_rows = engine._written_rows

    def written_elsewhere(rows: Any, directory: str) -> int:
        written = written_rows(rows, directory)
        for part in Path(local(directory)).glob("*.parquet"):
            part.unlink()
        return written

    monkeypatch.setattr(engine, "_written_rows", written_elsewhere)
    coincidences(3).written(lake)
    compared = ComparedSpark(lake, session, tmp_path / "steps")
    with pytest.raises(LakeError, match="is not shared by all workers"):
        compared.lineage.lineage([1], "back")


# The lake of seed 3 has clients of watched servers.
@pytest.mark.parametrize("seed", [3, 200, 201])
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


@pytest.mark.parametrize("left", [-9, None])
def test_a_damaged_data_file_is_named_by_spark(
    machine: Machine, lake: Path, session: object, left: int | None
) -> None:
    machine.record("sort in > out")
    machine.ship(lake)
    file = next((lake / "backstory" / "edges" / "data").rglob("*.parquet"))
    content = file.read_bytes()
    if left is None:
        file.unlink()
    else:
        file.write_bytes(content[:left])
    engine = engine_of(lake, session)
    with pytest.raises(LakeError) as raised, engine.bounded():
        rounds.lineage(engine, [1], rounds.Way("back"))
    message = str(raised.value)
    assert file.name in message and "restore this data file" in message, message
    assert len(message.splitlines()) == 1


def engine_of(lake: Path, session: object) -> Any:
    """The engine, with a lake of the tests."""
    from backstory_spark import SparkEngine

    return SparkEngine(session, Lake.open(str(lake)))  # type: ignore[arg-type]


def test_hubs_components_and_histories_on_spark_are_those_of_the_definition(
    lake: Path, session: object
) -> None:
    coincidences(305).written(lake)
    reference, engine = Reference(lake), engine_of(lake, session)
    compared = ComparedRounds(lake, engine)
    roots = some_files(reference, 4)
    assert check_hubs(compared, reference, roots, 2, options=((2, True),)) > 0
    assert check_components(reference, engine, 5, options=((None, True),)) > 0
    assert check_histories(reference, engine) > 0


def test_an_updated_closure_is_that_of_a_full_computation_on_spark(
    lake: Path, session: object
) -> None:
    ways = [rounds.Way("forth", hubs=3)]
    done = check_shipments(lake, 500, lambda made: engine_of(made, session), ways)
    assert EXTENDED in done


def chained(lake: Path, count: int) -> int:
    """A lake with a chain of copies, each by a process. Returns the key of the last file."""
    made = Invented()
    run = made.run("run1")
    file = made.file(run, "f0")
    for at in range(1, count + 1):
        process = made.process(run)
        made.edge(process, file, "read", 2 * at, 2 * at)
        file = made.file(run, f"f{at}", version=1)
        made.edge(process, file, "write", 2 * at + 1, 2 * at + 1)
    made.written(lake)
    return file


def test_small_rounds_shuffle_no_known_node_and_neither_plans_nor_estimates_grow(
    lake: Path, session: object
) -> None:
    last = chained(lake, 7)
    engine = engine_of(lake, session)
    asked = rounds.Rounds(engine, rounds.Way("back"))
    asked.follow(asked.begin([last]))
    assert len(asked.counts) > 14
    executed = engine.session.table(rounds.NODES)._jdf.queryExecution()
    # The rows that the nodes are made from, back to those that workers keep.
    made_from = executed.toRdd().toDebugString()
    assert "ShuffledRowRDD" not in made_from, made_from
    assert len(rounds.lineage(engine, [last], rounds.Way("back"))) > 14
    plan = engine.session.table(rounds.NODES)._jdf.queryExecution().optimizedPlan()
    assert int(str(plan.stats().sizeInBytes())).bit_length() < 1000
    assert engine.session.sql(rounds.answer()).count() == 14


def skewed(lake: Path, count: int) -> int:
    """A lake whose only process read many files, and wrote one. Returns the key of the latter."""
    made = Invented()
    run = made.run("run1")
    process = made.process(run)
    for at in range(count):
        made.edge(process, made.file(run, f"in{at}"), "read", at, at)
    out = made.file(run, "out", version=1)
    made.edge(process, out, "write", 0, count)
    made.written(lake)
    return out


def test_large_frontiers_shuffle_no_step_and_a_node_with_many_steps_is_divided(
    lake: Path, session: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backstory_spark import engine

    monkeypatch.setattr(engine, "FEW", 0)
    monkeypatch.setattr(engine, "BROADCAST", 0)
    monkeypatch.setattr(engine, "HOT", 50)
    out = skewed(lake, 400)
    reference, compared = Reference(lake), ComparedRounds(lake, engine_of(lake, session))
    made: Any = compared.engine
    made.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    roots = [("run1", "entity", out & 0xFFFFFFFF)]
    expected = reference.links(roots, "back", None, True)
    assert compared.links(roots, "back", None, True) == expected and len(expected) == 401
    steps = made.session.table("lake_steps_back")
    assert max(steps.rdd.glom().map(len).collect()) < 300
    way = rounds.Rounds(made, rounds.Way("back"))
    plan = made.session.sql(way._found(1))._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    above = [plan_above(plan, at) for at in scans(plan, "until")]
    assert above and all("Join" in " ".join(lines) for lines in above), plan
    for lines in above:
        below_join = lines[: next(at for at, line in enumerate(lines) if "Join" in line)]
        assert not [line for line in below_join if "Exchange" in line], plan


def test_a_small_frontier_reads_only_the_batches_of_steps_that_have_its_nodes(
    lake: Path, session: object
) -> None:
    out = skewed(lake, 400)
    made = engine_of(lake, session)
    made.session.conf.set("spark.sql.inMemoryColumnarStorage.batchSize", "10")
    way = rounds.Rounds(made, rounds.Way("back"))
    found = made.session.sql(way._found(way.begin([out])))
    assert len(found.collect()) == 1
    leaves = found._jdf.queryExecution().executedPlan().collectLeaves()
    kept = [leaves.apply(at) for at in range(leaves.size())]
    kept = [leaf for leaf in kept if "InMemoryTableScan" in leaf.nodeName()]
    read = [leaf.metrics().apply("numOutputRows").value() for leaf in kept]
    assert max(read) in range(1, 21), read


def scans(plan: str, column: str) -> list[int]:
    """The lines of a plan that read kept rows with a column."""
    lines = plan.splitlines()
    return [at for at, line in enumerate(lines) if "InMemoryTableScan" in line and column in line]


def plan_above(plan: str, at: int) -> list[str]:
    """The lines of the operators that read a line's rows, from the nearest on."""
    lines = plan.splitlines()

    def depth(line: str) -> int:
        return len(line) - len(line.lstrip(" :+-"))

    found, least = [], depth(lines[at])
    for line in reversed(lines[:at]):
        if depth(line) < least:
            found.append(line)
            least = depth(line)
    return found
