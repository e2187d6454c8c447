"""Lineage in a lake crosses runs by names, as `of` and `uses` do.

The names are those of connections of ssh, of connections to a watched server, and of things that
programs name.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Machine, answer, random_line
from invented import SECOND, UNNUMBERED, Invented, coincidences
from reference import Reference
from test_lineage import Compared, compare, recorded_fleet

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def mark(words: str) -> str:
    """A command of the shell that makes a mark: the attempt to open a path that cannot exist."""
    return f"{{ true < /dev/null/backstory/{words}; }} 2>/dev/null"


def line_of_things(choice: random.Random) -> str:
    """A line of the shell that reads files, or says that it used one of two things."""
    name, thing = choice.choice("abcdef"), choice.choice("12")
    said = mark(f"{choice.choice(['read', 'write', 'change'])}/thing:{thing}")
    forms = [
        said,
        f"{mark(f'read/thing:{thing}')}; echo {choice.random()} > {name}",
        f"read x < {name}; {said}; echo $x >> {choice.choice('abc')}",
    ]
    return choice.choice([*forms, random_line(choice)])


def over_ssh(here: Machine, there: Machine, choice: random.Random) -> None:
    """Two runs with the two ends of a connection, as `record --remote` makes them."""
    run = "".join(choice.choices(ALPHABET, k=8))
    (a, b), (c, d) = choice.sample("abcdef", 2), choice.sample("abcdef", 2)
    client = f"{mark(f'connect/box%2f{run}')}; exec cat"
    # The connection's end here: a program that passes on what it reads.
    here.record(f"cat {a} | ({client}) > {b}")
    words = ["remote-side", "--run", run, "--connection", f"box/{run}", "--"]
    script = choice.choice(
        [f"cat > {c}; cat {d}", f"cat {c}", f"cat > {c}; sort {c} > {d}; cat {d}"]
    )
    with subprocess.Popen(
        [os.environ["BACKSTORY_PROGRAM"], *words, script],
        cwd=there.directory,
        env=os.environ | {"BACKSTORY_STORE": str(there.store), "SHELL": "/bin/sh"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as far:
        far.communicate(b"from the other machine\n")
    assert far.returncode == 0
    there.program("index", "--wait")
    # The run comes back, as it does after `record --remote`.
    there.program("store", "push", str(here.store))


def two_machines(machine: Machine, seed: int, runs: int) -> Machine:
    """Runs of two machines that ssh connects. The first machine's store has all of them."""
    choice = random.Random(seed)
    other = Machine(machine.directory.with_name("other"))
    recorded_fleet(machine, seed, runs)
    recorded_fleet(other, seed + 1000, runs)
    for _ in range(runs):
        over_ssh(machine, other, choice)
        for one in (machine, other):
            one.record(random_line(choice))
    other.program("store", "push", str(machine.store))
    return other


def things(machine: Machine, seed: int, runs: int) -> None:
    """Runs that say what they do with things."""
    choice = random.Random(seed)
    recorded_fleet(machine, seed, 1)
    for _ in range(runs):
        machine.record("; ".join(line_of_things(choice) for _ in range(choice.randint(1, 4))))


#: An engine, by the lake that it opens.
Engine = Callable[[Path], Compared]


def crosses(lake: Path, kind: str) -> int:
    """The steps between runs that lead from an entity of a kind."""
    sql = (
        f"SELECT count(*) FROM lake_jumps j JOIN files f ON f.file = j.source WHERE kind = '{kind}'"
    )
    return int(answer(lake, sql)[0][0])


def compare_two_machines(
    machine: Machine, lake: Path, seed: int, runs: int, engine: Engine
) -> None:
    """Each machine ships its own store. One store has the runs of both, and the answers."""
    other = two_machines(machine, seed, runs)
    other.ship(lake)
    assert compare(machine, lake, "abcdef", lambda: engine(lake)) > 50
    assert crosses(lake, "socket") >= 2 * runs
    assert answer(lake, "SELECT count(DISTINCT machine) FROM runs") == [(2,)]


@pytest.mark.long
def test_lineage_crosses_a_connection_of_ssh_as_of_and_uses_do(
    machine: Machine, lake: Path
) -> None:
    compare_two_machines(machine, lake, 1, 2, Compared)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 7))
def test_lineage_crosses_many_connections_of_ssh_as_of_and_uses_do(
    machine: Machine, lake: Path, seed: int
) -> None:
    compare_two_machines(machine, lake, seed, 5, Compared)


@pytest.mark.long
def test_the_reference_crosses_a_connection_of_ssh_as_of_and_uses_do(
    machine: Machine, lake: Path
) -> None:
    compare_two_machines(machine, lake, 8, 2, Reference)


@pytest.mark.parametrize(
    ("seed", "runs"),
    [(1, 6), *(pytest.param(seed, 15, marks=pytest.mark.long) for seed in range(2, 7))],
)
def test_lineage_follows_things_as_of_and_uses_do(
    machine: Machine, lake: Path, seed: int, runs: int
) -> None:
    things(machine, seed, runs)
    assert compare(machine, lake, "abcdef") > 50
    assert crosses(lake, "resource") >= 2


@pytest.mark.long
def test_the_reference_follows_things_as_of_and_uses_do(machine: Machine, lake: Path) -> None:
    things(machine, 7, 8)
    assert compare(machine, lake, "abcdef", lambda: Reference(lake)) > 50


def test_things_of_two_machines_with_one_name_never_meet(machine: Machine, lake: Path) -> None:
    other = Machine(machine.directory.with_name("other"))
    machine.record(f"read x < in; {mark('write/thing:1')}")
    other.record(f"{mark('read/thing:1')}; echo > out")
    machine.ship(lake)
    other.ship(lake)
    assert answer(lake, "SELECT count(*) FROM files WHERE kind = 'resource'") == [(2,)]
    assert crosses(lake, "resource") == 0


@pytest.mark.parametrize(
    ("pids", "machine", "moment", "expected"),
    [
        ((7,), "m1", 0, "possible"),
        ((7,), "m2", 0, "possible"),
        ((8,), "m1", 0, None),
        ((8, 7), "m1", 0, "possible"),
        ((8, 7), "m1", SECOND, None),
        ((UNNUMBERED,), "m1", 0, "possible"),
        ((UNNUMBERED,), "m1", SECOND, None),
    ],
)
def test_a_client_possibly_meets_a_watched_server_if_one_process_has_both_ends(
    lake: Path, pids: tuple[int, ...], machine: str, moment: int, expected: str | None
) -> None:
    made = Invented()
    client = made.run("client", boot="b")
    process = made.process(client, pid=7)
    made.edge(process, made.file(client, "tcp:h:1", kind="socket"), "write", 0, 100)
    server = made.run("server", boot="b", source="watch", machine=machine)
    socket = made.file(server, "tcp:h:1", kind="socket")
    for pid in pids:
        known = made.process(server, pid=pid, started_ns=moment, ended_ns=moment + 50)
        made.edge(known, socket, "read", moment, moment + 50)
    made.written(lake)
    found = answer(lake, "SELECT DISTINCT certainty FROM lake_connected")
    assert found == ([(expected,)] if expected else [])


def agree_on_coincidences(lake: Path, seed: int, engine: Engine, each: bool = True) -> int:
    """Compares an engine with the reference for all files of an invented lake, and for each."""
    coincidences(seed).written(lake)
    compared, reference = engine(lake), Reference(lake)
    files = [
        (run, "entity", file & 0xFFFFFFFF)
        for run, file in answer(lake, "SELECT run, file FROM files ORDER BY file")
    ]
    chosen = random.Random(seed).sample(files, 3)
    options = ((None, True), (None, False), (2, True)) if each else ((None, True), (2, False))
    links = 0
    for roots in (files, *([one] for one in chosen if each)):
        for direction in ("back", "forth"):
            for bound, possible in options:
                expected = reference.links(roots, direction, bound, possible)
                found = compared.links(roots, direction, bound, possible)
                question = f"seed {seed}: {roots} {direction} {bound} {possible}"
                assert found - expected == set(), f"{question}: invented"
                assert expected - found == set(), f"{question}: lost"
                links += len(expected)
    return links


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 100))]
)
def test_lineage_in_sql_is_that_of_the_reference_for_coincidences(lake: Path, seed: int) -> None:
    assert agree_on_coincidences(lake, seed, Compared) > 20
