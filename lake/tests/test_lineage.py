"""`lineage` in SQL gives the links of `backstory of` and `uses`, edge by edge."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import Machine, answer, random_line
from invented import Invented

from backstory_lake.flows import DRIVERS, FORGETFUL, FORGETFUL_BELOW
from backstory_lake.lake import Lake
from backstory_lake.questions import Limits, Question

LOCAL = (1 << 32) - 1

Node = tuple[str, str, int]
Link = tuple[Node, Node, str, str | None, str]


def recorded_fleet(machine: Machine, seed: int, runs: int) -> None:
    """Random lines, some of them not recorded."""
    choice = random.Random(seed)
    for name in "abcdef":
        content = "".join(f"{choice.random()}\n" for _ in range(9))
        (machine.directory / name).write_text(content)
    for _ in range(runs):
        script = "; ".join(random_line(choice) for _ in range(choice.randint(1, 4)))
        machine.record(script)
        if choice.random() < 0.3:
            # A copy that only its content joins.
            a, b = choice.sample("abcdef", 2)
            source = machine.directory / a
            (machine.directory / b).write_bytes(source.read_bytes())


def links_of_store(machine: Machine, words: list[str]) -> tuple[set[Link], list[Node]]:
    """The links of the program's answer, and the subjects."""
    found = json.loads(machine.program(*words, "--all", "--json"))

    def node(one: dict[str, Any]) -> Node:
        return one["run"], one["type"], one["id"] & LOCAL

    nodes = [node(one) for one in found["nodes"]]
    links = {
        (nodes[link["from"]], nodes[link["to"]], link["flow"], link["how"], link["certainty"])
        for link in found["links"]
    }
    return links, nodes[: found["roots"]]


class Compared:
    """A lake, and the runs' numbers in it."""

    def __init__(self, lake: Path) -> None:
        self.question = Question(Lake.open(str(lake)), Limits(seconds=300, megabytes=2000))
        with self.question.rows("SELECT DISTINCT file >> 32, run FROM files") as rows:
            self.runs = dict(rows.fetchall())
        self.numbers = {run: number for number, run in self.runs.items()}

    def links(self, roots: list[Node], direction: str, bound: int | None, possible: bool) -> set:
        """The links that `lineage` finds."""
        keys = self.keys(roots)
        most = "NULL" if bound is None else bound
        sql = f"FROM lineage({keys}::BIGINT[], '{direction}', {most}, possible := {possible})"
        with self.question.rows(sql) as rows:
            return {self._link(row) for row in rows.fetchall()}

    def keys(self, roots: list[Node]) -> list[int]:
        """The keys of files in the lake."""
        return [self.numbers[run] << 32 | local for run, _, local in roots]

    def _link(self, row: tuple[Any, ...]) -> Link:
        from_process, from_file, to_process, to_file, flow, how, certainty = row[:7]
        source = self._node(from_process, from_file)
        return source, self._node(to_process, to_file), flow, how, certainty

    def _node(self, process: int | None, file: int | None) -> Node:
        kind, key = ("entity", file) if process is None else ("activity", process)
        assert key is not None
        return self.runs[key >> 32], kind, key & LOCAL


def assert_same(question: str, found: set[Link], expected: set[Link]) -> None:
    """Fails with the links that an answer has too many, or lacks."""
    assert found - expected == set(), f"{question}: invented"
    assert expected - found == set(), f"{question}: lost"


def compare(
    machine: Machine,
    lake: Path,
    names: Iterable[str] = "abcdef",
    engine: Callable[[], Compared] | None = None,
) -> int:
    """Compares all answers about some files. Returns the number of links."""
    machine.ship(lake)
    compared = engine() if engine else Compared(lake)
    count = 0
    options: list[tuple[list[str], int | None, bool]] = [
        ([], None, True),
        (["--no-possible"], None, False),
        (["--depth", "2"], 2, True),
    ]
    for name in names:
        for word, direction in (("of", "back"), ("uses", "forth")):
            for extra, bound, possible in options:
                expected, roots = links_of_store(machine, [word, name, *extra])
                found = compared.links(roots, direction, bound, possible)
                question = f"{word} {name} {extra}"
                assert_same(question, found, expected)
                count += len(expected)
    return count


def test_lineage_has_the_links_of_of_and_uses(machine: Machine, lake: Path) -> None:
    recorded_fleet(machine, seed=1, runs=3)
    assert compare(machine, lake, "a") > 20


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_lineage_has_the_links_of_of_and_uses_for_many_fleets(
    machine: Machine, lake: Path, seed: int
) -> None:
    recorded_fleet(machine, seed, runs=12)
    assert compare(machine, lake) > 500


def flows_of(lake: Path, file: int) -> list[tuple[Any, ...]]:
    """How often each kind of link is behind a file."""
    links = f"lineage([{file}]::BIGINT[], 'back', NULL)"
    return answer(lake, f"SELECT flow, count(*) FROM {links} GROUP BY ALL ORDER BY ALL")


def test_contents_of_two_machines_meet_in_the_order_of_their_clocks(lake: Path) -> None:
    made = Invented()

    def version(run: int, name: str, inode: int, modified: int, number: int = 0) -> int:
        moments = dict.fromkeys(("modified_ns", "changed_ns", "born_ns"), modified)
        facts = {"digest": "d1", "size": 100, "device": 1, "inode": inode, "version": number}
        return made.file(run, name, **facts, **moments)

    maker, reader = (made.run(name, machine=name) for name in ("maker", "reader"))
    out = version(maker, "out", 1, 10, number=1)
    made.edge(made.process(maker), out, "write", 10, 10)
    early, equal, late = (version(reader, f"copy{at}", at, at) for at in (9, 10, 11))
    # A copy with the times of the original, which the reader's clock has not reached.
    process, result = made.process(reader), made.file(reader, "result", version=1)
    made.edge(process, equal, "read", 5, 6)
    made.edge(process, result, "write", 7, 7)
    made.written(lake)
    assert flows_of(lake, early) == []
    assert flows_of(lake, equal) == flows_of(lake, late) == [("generated", 1), ("same", 1)]
    # The maker wrote after the reader read, by their clocks.
    assert flows_of(lake, result) == [("generated", 1), ("same", 1), ("used", 1)]


def test_the_devices_that_pass_nothing_on_are_those_of_the_program() -> None:
    source = Path(__file__, "../../../crates/graph/src/lineage.rs").resolve().read_text()

    def listed(name: str) -> tuple[str, ...]:
        (body,) = re.findall(rf"const {name}: [^=]*= \[(.*?)\];", source, re.S)
        return tuple(re.findall(r'b"([^"]*)"', body))

    assert listed("FORGETFUL") == FORGETFUL
    assert listed("FORGETFUL_BELOW") == FORGETFUL_BELOW
    assert listed("DRIVERS") == DRIVERS
