"""The engines give the same links for a generated fleet, edge by edge.

The reference in Python has the links of `backstory of` and `uses` for recorded runs, and decides
about generated ones, which no store has.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Machine
from reference import Reference
from test_lineage import Compared, Node, assert_same, compare, recorded_fleet

from backstory_fleet import templates
from backstory_fleet.fleet import Parameters, Size
from backstory_fleet.generate import generate
from backstory_lake.lake import Lake

LOCAL = (1 << 32) - 1
#: The bound of a lineage, and whether it has flows that are only possible.
OPTIONS = ((None, True), (None, False), (2, True), (5, True))


def fleet_of(recorded: Path, lake: Path, seed: int, size: Size) -> Path:
    """A lake with a small fleet in which many runs meet."""
    parameters = Parameters(seed=seed, jobs=6, projects=2, largest=3, layer_days=1)
    found = templates.read(Lake.open(str(recorded)))
    generate(found, Lake.open(str(lake), create=True), size, parameters)
    return lake


def subjects(compared: Compared, count: int) -> list[Node]:
    """Some results, some files that runs share, and files of layers."""
    chosen = []
    for condition in (
        "f.version > 0 AND f.last",
        "f.file IN (SELECT target FROM lake_jumps)",
        "f.file IN (SELECT source FROM lake_jumps WHERE how = 'content')",
    ):
        sql = (
            f"SELECT f.run, f.file & {LOCAL} FROM files f WHERE f.kind = 'file' AND {condition} "
            f"ORDER BY hash(f.file) LIMIT {count}"
        )
        with compared.question.rows(sql) as rows:
            chosen += [(run, "entity", local) for run, local in rows.fetchall()]
    assert len(chosen) == 3 * count
    return chosen


def agree(
    engine: Compared,
    reference: Reference,
    count: int,
    each: bool = True,
    options: tuple[tuple[int | None, bool], ...] = OPTIONS,
) -> int:
    """Compares both for all subjects at once, and for each. Returns the number of links."""
    links = 0
    nodes = subjects(reference, count)
    for roots in [nodes, *([node] for node in nodes if each)]:
        for direction in ("back", "forth"):
            for bound, possible in options:
                expected = reference.links(roots, direction, bound, possible)
                found = engine.links(roots, direction, bound, possible)
                assert_same(f"{roots} {direction} {bound} {possible}", found, expected)
                links += len(expected)
    return links


def test_the_reference_has_the_links_of_of_and_uses(machine: Machine, lake: Path) -> None:
    recorded_fleet(machine, seed=3, runs=4)
    assert compare(machine, lake, "ab", lambda: Reference(lake)) > 50


def test_lineage_in_sql_is_that_of_the_reference_for_a_fleet(recorded: Path, lake: Path) -> None:
    fleet_of(recorded, lake, seed=1, size=Size(machines=3, days=2))
    # The recorded runs decide which files are asked about: there are 370 to 3,400 links.
    assert agree(Compared(lake), Reference(lake), count=2, each=False) > 100


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_lineage_in_sql_is_that_of_the_reference_for_many_fleets(
    recorded: Path, lake: Path, seed: int
) -> None:
    fleet_of(recorded, lake, seed, size=Size(machines=5, days=3))
    assert agree(Compared(lake), Reference(lake), count=4) > 5000
