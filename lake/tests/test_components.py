"""Components of contamination, and histories of digests, are those of plain Python."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Machine, command
from invented import coincidences
from reference import Key, Reference, Search
from test_hubs import OPTIONS, duck, some_files

from backstory_lake import components, history
from backstory_lake.engine import Engine

Members = dict[int, set[Key]]


def grouped(reference: Reference, roots: list[Key], bound: int | None, possible: bool) -> Members:
    """The definition: everything that came from the roots, joined by links."""
    links = Search(reference, "forth", bound, possible).links(roots)
    near = defaultdict(set)
    for link in links:
        near[link.source].add(link.target)
        near[link.target].add(link.source)
    found: Members = {}
    for root in sorted(roots):
        if any(root in members for members in found.values()):
            continue
        members, waiting = {root}, [root]
        while waiting:
            for node in near[waiting.pop()] - members:
                members.add(node)
                waiting.append(node)
        found[root[1]] = members
    return found


def check_components(
    reference: Reference,
    engine: Engine,
    count: int,
    options: tuple[tuple[int | None, bool], ...] = OPTIONS,
) -> int:
    """Compares the components of some withdrawn files. Returns the greatest number of them."""
    keys = reference.keys(some_files(reference, count))
    roots: list[Key] = [("file", key) for key in keys]
    most = 0
    for bound, possible in options:
        components.components(engine, keys, bound, possible)
        found: Members = defaultdict(set)
        withdrawn = set()
        for component, process, file, is_root in engine.ask(
            f"SELECT * FROM {components.MEMBERS}"
        ).rows:
            node: Any = ("file", file) if process is None else ("process", process)
            found[component].add(node)  # type: ignore[index]
            withdrawn |= {node} if is_root else set()
        expected = grouped(reference, roots, bound, possible)
        assert found == expected and withdrawn == set(roots), (keys, bound, possible)
        most = max(most, len(expected))
        assert any(len(members) > 1 for members in expected.values())
    return most


def check_histories(reference: Reference, engine: Engine) -> int:
    """Compares the histories of all digests. Returns the number of rows."""
    seen: dict[Any, dict[Any, list[Any]]] = defaultdict(dict)
    edges = defaultdict(list)
    for edge in reference._rows("edges"):
        edges[edge["file"]].append(edge)
    for file in reference._files.values():
        run = reference._runs[file["run"]]
        place = run["host"], run["machine"], file["path"]
        times = [time for edge in edges[file["file"]] for time in (edge["started_ns"],)]
        ends = [edge["ended_ns"] for edge in edges[file["file"]]]
        first, last = min(times or [run["started_ns"]]), max(ends or [run["started_ns"]])
        made = file["file"] in reference._made
        seen[file["digest"]].setdefault(place, []).append((first, file["run"], last, made))
    count = 0
    for digest, places in seen.items():
        if digest is None:
            continue
        expected = []
        for place, all_seen in places.items():
            firsts = {
                run: min(one[0] for one in all_seen if one[1] == run) for _, run, *_ in all_seen
            }
            writers = sorted((firsts[run], run) for run in {one[1] for one in all_seen if one[3]})
            expected.append(
                (*place, min(firsts.values()), max(one[2] for one in all_seen), len(firsts),
                 len(writers), writers[0][1] if writers else None)
            )  # fmt: skip
        found = [row[:8] for row in engine.ask(history.history(digest, engine.quoted)).rows]
        assert sorted(found, key=str) == sorted(expected, key=str), digest
        count += len(found)
    return count


@pytest.mark.parametrize("seed", (401,))
def test_components_of_contamination_are_those_of_the_definition(lake: Path, seed: int) -> None:
    coincidences(seed).written(lake)
    assert check_components(Reference(lake), duck(lake), 5) > 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(402, 423))
def test_components_of_contamination_are_those_of_the_definition_in_many_lakes(
    lake: Path, seed: int
) -> None:
    coincidences(seed, runs=12).written(lake)
    check_components(Reference(lake), duck(lake), 6)


@pytest.mark.parametrize("seed", (404, pytest.param(405, marks=pytest.mark.long)))
def test_the_history_of_a_digest_is_that_of_the_definition(lake: Path, seed: int) -> None:
    coincidences(seed, runs=12).written(lake)
    assert check_histories(Reference(lake), duck(lake)) > 3


def test_the_commands_group_withdrawn_files_and_show_where_a_content_was(
    machine: Machine, lake: Path
) -> None:
    for name in ("one", "two", "alone"):
        (machine.directory / name).write_text(f"{name}\n" * 30)
    machine.record("cat one two > both; cat both > last")
    made = machine.record("cat alone > other; cp other again")
    machine.ship(lake)
    base = ("--lake", str(lake))
    names = ("one", "two", "alone")
    paths = [word for name in names for word in ("--path", str(machine.directory / name))]
    groups = json.loads(command("components", *base, *paths, "--json").stdout)
    assert sorted(group["withdrawn"] for group in groups) == [1, 2]
    printed = command("components", *base, *paths, "--members").stdout
    assert all(str(machine.directory / name) in printed for name in ("last", "again")), printed
    sql = "SELECT digest FROM files WHERE path LIKE '%/other' AND digest IS NOT NULL LIMIT 1"
    digest = json.loads(command("query", *base, "--json", sql).stdout)[0]["digest"]
    rows = json.loads(command("history", *base, "--digest", digest, "--json").stdout)
    writers = {row["path"].rsplit("/", 1)[-1]: row["written_by"] for row in rows}
    assert writers["other"] == writers["again"] == made, rows
    in_sql = command("query", *base, "--json", f"FROM history('{digest}') ORDER BY first_ns, path")
    assert json.loads(in_sql.stdout) == rows
    assert digest not in command("history", *base, "--digest", digest).stdout
    ended = command("history", *base, "--digest", "00")
    assert ended.returncode == 1 and "has no file 00" in ended.stderr
    ended = command("history", *base, "--path", "x")
    assert ended.returncode == 2 and "give one --digest" in ended.stderr
