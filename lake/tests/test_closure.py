"""A closure that was updated has the rows of one that is made anew."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Machine, command
from invented import Invented, coincidences
from test_hubs import duck

from backstory_lake import closure, erasure, hubs, rounds
from backstory_lake.closure import ANEW, EXTENDED, UNCHANGED
from backstory_lake.engine import Engine
from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.subjects import Subjects

RUNS = 9
WAYS = [
    rounds.Way("back"),
    rounds.Way("forth"),
    rounds.Way("forth", 2, False),
    rounds.Way("forth", hubs=3),
    rounds.Way("back", hubs=2, summary=True),
]


def rows(engine: Engine, table: str) -> list[str]:
    """The rows of a table, in order."""
    kinds = {"nodes": rounds.COLUMNS, "links": closure._LINK, "hubs": hubs.COLUMNS}
    columns = next(names for kind, names in kinds.items() if table.endswith(kind))
    return sorted(map(str, engine.ask(f"SELECT {', '.join(columns)} FROM {table}").rows))


def agrees(kept: closure.Closure, engine: Engine) -> int:
    """Compares the stored tables with new ones. Returns the number of links."""
    opened = closure.Closure.open(kept.directory, engine)
    opened.load(engine)
    names = [closure._STORED_NODES, closure._STORED_LINKS, closure.STORED_HUBS]
    made = [rounds.NODES, rounds.ALL_LINKS, hubs.REPORT]
    if opened.way.hubs is None:
        del names[2], made[2]
    stored = [rows(engine, name) for name in names]
    rounds.lineage(engine, opened._files(engine), opened.way)
    assert stored == [rows(engine, name) for name in made]
    return len(stored[1])


def check_shipments(
    lake: Path, seed: int, engine: Callable[[Path], Any], ways: list[rounds.Way] = WAYS
) -> set[str]:
    """Ships runs in random order and some at a time, and forgets one. Returns what updates did."""
    choice = random.Random(seed)
    invented = coincidences(seed, RUNS)
    order = list(range(1, RUNS + 1))
    choice.shuffle(order)
    # A closure needs a file in the beginning.
    has_file = next(row["number"] for row in invented.rows["files"] if row.get("digest") == "d1")
    order.remove(has_file)
    order.insert(0, has_file)
    invented.written(lake, order[:3])
    first = engine(lake)
    kept = [
        closure.make(lake.parent / f"closure{at}", first, Subjects(digests=("d1",)), way)
        for at, way in enumerate(ways)
    ]
    done, links = set(), 0

    def update() -> int:
        made, links = engine(lake), 0
        for one in kept:
            opened = closure.Closure.open(one.directory, made)
            done.add(opened.update(made))
            links += agrees(one, made)
            # The former tables are gone.
            assert len(list(one.directory.iterdir())) == 2
        return links

    for at in range(3, RUNS, 2):
        invented.written(lake, order[at : at + 2])
        links = update()
    assert links > 5
    forgotten = order[1]
    erasure.forget(Lake.open(str(lake)), [f"run{forgotten - 1}"])
    update()
    made = engine(lake)
    for one in kept:
        opened = closure.Closure.open(one.directory, made)
        assert opened.update(made) == UNCHANGED
        nodes = made.ask(f"SELECT node FROM {closure._STORED_NODES}").rows
        assert forgotten not in {(node if node >= 0 else ~node) >> 32 for (node,) in nodes}
    return done


def test_an_updated_closure_is_that_of_a_full_computation(lake: Path) -> None:
    assert check_shipments(lake, 500, duck, WAYS[2:4]) == {EXTENDED, ANEW}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(500, 531))
def test_an_updated_closure_is_that_of_a_full_computation_in_many_lakes(
    lake: Path, seed: int
) -> None:
    assert ANEW in check_shipments(lake, seed, duck)


def test_a_known_file_that_becomes_a_hub_is_not_followed_any_more(lake: Path) -> None:
    invented = Invented()
    first, second = invented.run("run1"), invented.run("run2")
    names = [invented.file(first, name, digest=name, size=100) for name in ("in", "mid", "out")]
    makers = [invented.process(first), invented.process(first)]
    for at, maker in enumerate(makers):
        invented.edge(maker, names[at], "read", 2 * at, 2 * at)
        invented.edge(maker, names[at + 1], "write", 2 * at + 1, 2 * at + 1)
    reader, copy = invented.process(second), invented.file(second, "b", digest="mid", size=100)
    invented.edge(reader, copy, "read", 9, 9)
    way = rounds.Way("forth", hubs=2)
    before = duck(invented.written(lake, [first]))
    kept = closure.make(lake.parent / "kept", before, Subjects(paths=("in",)), way)
    assert agrees(kept, before) == 4
    now = duck(invented.written(lake, [second]))
    assert closure.Closure.open(kept.directory, now).update(now) == ANEW
    # The links to the first maker and to the hub are left.
    assert agrees(kept, now) == 2
    assert next(now.ask(f"SELECT files, steps FROM {closure.STORED_HUBS}").rows) == (1, 1)


def test_the_command_keeps_a_closure_and_says_when_it_is_old(
    machine: Machine, lake: Path, tmp_path: Path
) -> None:
    machine.record("cat in > mid")
    machine.ship(lake)
    kept, base = str(tmp_path / "kept"), ("--lake", str(lake))
    path = str(machine.directory / "in")
    words = ("closure", "make", kept, *base, "--path", path, "--forth")
    assert "made" in command(*words).stdout
    machine.record("cat mid > last")
    machine.ship(lake)
    old = command("closure", "show", kept, *base, "--json")
    assert "differs" in old.stderr and "/last" not in old.stdout
    assert command("closure", "update", kept, *base).stdout.endswith(f"{EXTENDED}\n")
    new = command("closure", "show", kept, *base, "--json")
    asked = command("lineage", *base, "--path", path, "--forth", "--json")
    found, expected = (json.loads(ended.stdout)["links"] for ended in (new, asked))
    assert found == expected and "/last" in new.stdout
    assert new.stderr == ""
    for wrong, status, message in [
        (words, 2, "is a closure already"),
        (("closure", "update", str(tmp_path), *base), 1, "closure make` makes one"),
        (("closure", "update", kept, *base, "--path", path), 2, "is fixed"),
        (("closure", "update", kept, *base, "--hubs", "9"), 2, "is fixed"),
        (("closure", "update", kept, *base, "--all"), 2, "prints no links"),
    ]:
        ended = command(*wrong)
        assert (ended.returncode, message in ended.stderr) == (status, True), ended.stderr


def test_a_damaged_closure_and_one_of_another_lake_are_clear_errors(
    lake: Path, tmp_path: Path
) -> None:
    invented = coincidences(500, 3)
    invented.written(lake)
    engine = duck(lake)
    made = closure.make(tmp_path / "kept", engine, Subjects(paths=("a",)), rounds.Way())
    other = duck(invented.written(tmp_path / "other"))
    with pytest.raises(LakeError, match="another lake"):
        closure.Closure.open(made.directory, other)
    file = next((made.directory / made.tables / "nodes").iterdir())
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(LakeError, match="cannot be read"):
        made.update(engine)
    facts = made.directory / "closure.json"
    facts.write_text(facts.read_text().replace('"form": 1', '"form": 3'))
    with pytest.raises(LakeError, match="install a newer"):
        closure.Closure.open(made.directory, engine)
    facts.write_text("{")
    with pytest.raises(LakeError, match="cannot be read"):
        closure.Closure.open(made.directory, engine)
