"""A rule about hubs leaves nothing out silently, and without it nothing is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Machine, command
from invented import coincidences
from reference import Contents, Key, Reference, Search, Step
from test_fleet_lineage import agree, fleet_of, subjects
from test_lineage import Compared, Link, Node, assert_same

from backstory_fleet.fleet import Size
from backstory_lake import hubs, rounds
from backstory_lake.engine import Duck, Engine
from backstory_lake.errors import MisuseError
from backstory_lake.lake import Lake
from backstory_lake.questions import Limits

#: The bound of a lineage, and whether it has flows that are only possible.
OPTIONS = ((None, True), (2, False))
COUNTS = "edges, files, steps, links"


def duck(lake: Path) -> Duck:
    """DuckDB, with a lake of the tests."""
    return Duck(Lake.open(str(lake)), Limits(300, 2000))


class ComparedRounds(Compared):
    """A lake as an engine sees it, round by round."""

    def __init__(self, lake: Path, engine: Engine) -> None:
        super().__init__(lake)
        self.engine = engine

    def links(
        self, roots: list[Node], direction: str, bound: int | None, possible: bool
    ) -> set[Link]:
        return self.answer(roots, rounds.Way(direction, bound, possible))

    def answer(self, roots: list[Node], way: rounds.Way) -> set[Link]:
        """The links of an answer."""
        rounds.lineage(self.engine, self.keys(roots), way)
        return {self._link(row) for row in self.engine.ask(rounds.answer()).rows}

    def reported(self) -> list[tuple[Any, ...]]:
        """The hubs that the last answer came to: their edges, files, steps and links."""
        report = hubs.named(hubs.REPORT, "false")
        return sorted(self.engine.ask(f"SELECT {COUNTS} FROM ({report}) named").rows)

    def in_sql(self, roots: list[Node], way: rounds.Way) -> tuple[set[Link], list[Any]]:
        """The links of `lineage` in SQL, and the hubs of `lineage_hubs`."""
        bound = "NULL" if way.bound is None else way.bound
        asked = (
            f"({self.keys(roots)}::BIGINT[], '{way.direction}', {bound}, "
            f"possible := {way.possible}, hubs := {way.hubs}, summary := {way.summary})"
        )
        with self.question.rows(f"FROM lineage{asked}") as rows:
            links = {self._link(row) for row in rows.fetchall()}
        with self.question.rows(f"SELECT {COUNTS} FROM lineage_hubs{asked}") as rows:
            return links, sorted(rows.fetchall())


def check_hubs(
    engine: ComparedRounds,
    reference: Reference,
    roots: list[Node],
    most: int,
    options: tuple[tuple[int | None, bool], ...] = OPTIONS,
) -> int:
    """Compares answers with hubs to the reference. Returns the number of hubs."""
    contents = Contents(reference)
    keys: list[Key] = [("file", key) for key in reference.keys(roots)]
    cut = contents.hubs(most, keys)
    came_to = 0
    for direction in ("back", "forth"):
        for bound, possible in options:
            search = Search(reference, direction, bound, possible, cut)
            steps = search.links(keys)
            expected = {reference._named(step) for step in steps}
            way = rounds.Way(direction, bound, possible, most)
            found = engine.answer(roots, way)
            question = f"{roots} {direction} {bound} {possible} {most}"
            assert_same(question, found, expected)
            assert engine.reported() == report(contents, search, direction, set()), question
            assert engine.in_sql(roots, way) == (expected, engine.reported()), question
            # A link that is missing is behind a hub that is reported.
            full = reference.links(roots, direction, bound, possible)
            behind = Search(reference, direction, None, possible).links(list(search.came_to))
            assert full <= expected | {reference._named(step) for step in behind}
            assert search.came_to or found == full
            summary = rounds.Way(direction, bound, possible, most, summary=True)
            into = {step for step in steps if far_end(step, direction) in cut}
            kept = {reference._named(step) for step in steps - into}
            assert_same(question, engine.answer(roots, summary), kept)
            assert engine.reported() == report(contents, search, direction, into), question
            assert engine.in_sql(roots, summary) == (kept, engine.reported()), question
            came_to += len(engine.reported())
    return came_to


def far_end(step: Step, direction: str) -> Key:
    """The node that a step leads to."""
    return step.source if direction == "back" else step.target


def report(
    contents: Contents, search: Search, direction: str, into: set[Step]
) -> list[tuple[Any, ...]]:
    """The edges, files and steps of the hubs that a search came to, and links that are left out."""
    rows: dict[Any, list[int]] = {}
    for node in search.came_to:
        content = contents.of[node]
        rows.setdefault(content, [contents.edges[content], 0, 0, 0])[1] += 1
    for step in search.beyond:
        near = step.target if direction == "back" else step.source
        rows[contents.of[near]][2] += 1
    for step in into:
        rows[contents.of[far_end(step, direction)]][3] += 1
    return sorted(map(tuple, rows.values()))


def some_files(reference: Reference, count: int) -> list[Node]:
    """Some files of a lake."""
    rows = sorted(reference._files.values(), key=lambda row: (row["file"] * 2654435761) % 1009)
    mask = (1 << 32) - 1
    return [(row["run"], "entity", row["file"] & mask) for row in rows[:count]]


def check_coincidences(lake: Path, seed: int, engine: Any) -> int:
    """Compares answers about an invented lake. Returns the number of hubs."""
    coincidences(seed).written(lake)
    reference, compared = Reference(lake), ComparedRounds(lake, engine(lake))
    roots = some_files(reference, 4)
    for direction in ("back", "forth"):
        for bound, possible in OPTIONS:
            found = compared.links(roots, direction, bound, possible)
            expected = reference.links(roots, direction, bound, possible)
            assert_same(f"{roots} {direction} {bound} {possible}", found, expected)
    return check_hubs(compared, reference, roots, most=2)


@pytest.mark.parametrize("seed", (307,))
def test_each_link_that_a_hub_hides_is_behind_a_reported_hub(lake: Path, seed: int) -> None:
    assert check_coincidences(lake, seed, duck) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(305, 322))
def test_each_link_that_a_hub_hides_is_behind_a_reported_hub_in_many_lakes(
    lake: Path, seed: int
) -> None:
    check_coincidences(lake, seed, duck)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30, 32))
def test_hubs_of_a_fleet_are_those_of_the_reference(recorded: Path, lake: Path, seed: int) -> None:
    fleet_of(recorded, lake, seed, size=Size(machines=4, days=2))
    reference, engine = Reference(lake), ComparedRounds(lake, duck(lake))
    assert agree(engine, reference, count=2, each=False) > 500
    roots = subjects(reference, 2)
    assert check_hubs(engine, reference, roots, most=30) > 0
    # Without a hub in the lake, the rule changes nothing.
    assert check_hubs(engine, reference, roots, most=10**9) == 0


def test_a_wrong_rule_about_hubs_is_misuse() -> None:
    for wrong in ({"hubs": -1}, {"summary": True}, {"bound": -1}, {"direction": "up"}):
        with pytest.raises(MisuseError):
            rounds.Way(**wrong)  # type: ignore[arg-type]


def test_a_wrong_rule_about_hubs_in_sql_is_misuse(lake: Path) -> None:
    coincidences(305).written(lake)
    for wrong, message in (("summary := true", "hubs := N"), ("hubs := -1", "0 or more")):
        for macro in ("lineage", "lineage_hubs"):
            ended = command("query", "--lake", str(lake), f"FROM {macro}([1], 'back', 1, {wrong})")
            assert ended.returncode == 2 and message in ended.stderr, ended.stderr


def test_the_command_names_links_and_the_hubs_that_it_cut(
    machine: Machine, lake: Path, tmp_path: Path
) -> None:
    (machine.directory / "o'b\\n").write_text("words\n" * 30)
    machine.record('for a in 1 2 3 4; do cat "o\'b\\\\n" in > $a; done; cat 1 2 > all')
    machine.ship(lake)
    name = str(machine.directory / "o'b\\n")
    all_words = ("lineage", "--lake", str(lake), "--path", name, "--forth")
    plain = json.loads(command(*all_words, "--json").stdout)
    ends = {(link["source"], link["target"].rsplit("/", 1)[-1]) for link in plain["links"]}
    assert plain["hubs"] == [] and ("cat 1 2", "all") in ends
    assert any(source == name and target.startswith("cat ") for source, target in ends)
    back = ("lineage", "--lake", str(lake), "--path", str(machine.directory / "all"))
    cut = json.loads(command(*back, "--json", "--hubs", "3").stdout)["hubs"]
    # All four copies have one content.
    assert str(machine.directory / "1") in {hub["path"] for hub in cut}, cut
    printed = command(*back, "--hubs", "3", "--summary").stdout
    assert "hub summarised: " in printed and "are left out" in printed
    kept = str(tmp_path / "kept")
    made = command("closure", "make", kept, *back[1:], "--hubs", "3", "--summary")
    assert made.returncode == 0, made.stderr
    shown = command("closure", "show", kept, *back[1:3]).stdout
    assert shown == printed
    for words, status, message in [
        ((*all_words, "--summary"), 2, "needs the number of edges"),
        ((*all_words, "--path", "/nowhere"), 1, "has no file /nowhere; `backstory query"),
        (("lineage", "--lake", str(lake)), 2, "give --file, --digest or --path"),
    ]:
        ended = command(*words)
        assert (ended.returncode, message in ended.stderr) == (status, True), ended.stderr
