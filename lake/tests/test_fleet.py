"""A generated fleet is like its corpus, consistent, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import answer, answers

from backstory_fleet import cli, distributions, templates
from backstory_fleet.fleet import Parameters, Size
from backstory_fleet.generate import generate
from backstory_lake.lake import Lake

TABLES = ("processes", "files", "edges", "steps", "derivations", "informs", "runs")


@pytest.fixture(scope="module")
def fleet(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of some machines."""
    return made(recorded, tmp_path_factory.mktemp("fleet") / "lake")


def made(recorded: Path, lake: Path, seed: int = 1, machines: int = 6, days: int = 3) -> Path:
    """A lake with a fleet."""
    size = Size(machines, days)
    found = templates.read(Lake.open(str(recorded)))
    generate(found, Lake.open(str(lake), create=True), size, Parameters(seed=seed))
    return lake


def sums(lake: Path) -> list[tuple[Any, ...]]:
    """A sum over all rows of each table."""
    questions = [f"SELECT count(*), bit_xor(hash(t)) FROM {table} t" for table in TABLES]
    return [rows[0] for rows in answers(lake, *questions)]


def test_a_fleet_has_the_distributions_of_its_corpus(recorded: Path, fleet: Path) -> None:
    found = distributions.compare(Lake.open(str(recorded)), Lake.open(str(fleet)))
    assert [str(one) for one in found if not one.holds] == []
    assert len(found) > 9


def test_a_fleet_that_is_not_like_a_corpus_is_reported(
    fleet: Path, tmp_path: Path, machine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.record("for a in 1 2 3 4 5 6 7 8 9; do cat in > out$a; done")
    machine.ship(tmp_path / "other")
    words = ("check", "--corpus", str(tmp_path / "other"), "--lake", str(fleet))
    assert cli.main(words) == 1
    assert "writes of a process: " in capsys.readouterr().out


@pytest.mark.long
def test_each_key_of_a_fleet_names_a_row_of_the_same_run(fleet: Path) -> None:
    for table, key, of in [
        ("edges", "process", "process FROM processes"),
        ("edges", "file", "file FROM files"),
        ("files", "previous", "file FROM files"),
        ("derivations", "origin", "file FROM files"),
        ("derivations", "file", "file FROM files"),
        ("informs", "origin", "process FROM processes"),
        ("processes", "parent", "process FROM processes"),
    ]:
        sql = f"SELECT count(*) FROM {table} WHERE {key} IS NOT NULL AND {key} NOT IN (SELECT {of})"
        assert answer(fleet, sql) == [(0,)], (table, key)
    for table, key in [("files", "file"), ("processes", "process"), ("runs", "run")]:
        sql = f"SELECT count(*) - count(DISTINCT {key}) FROM {table}"
        assert answer(fleet, sql) == [(0,)], table
    sql = "SELECT count(*) FROM edges e JOIN runs r USING (run) WHERE e.started_ns < r.started_ns"
    assert answer(fleet, sql) == [(0,)]


def test_machines_meet_by_identity_by_copies_and_by_layers(fleet: Path) -> None:
    sql = """SELECT j.how, m.host = c.host, starts_with(r.command, 'tar -xf layer-'), count(*)
      FROM lake_jumps j JOIN files m ON m.file = j.source JOIN files c ON c.file = j.target
      JOIN runs r ON r.run = m.run GROUP BY ALL"""
    found = {row[:3]: row[3] for row in answer(fleet, sql)}
    assert found[None, True, False] > 10, "files that a later run of the machine reads"
    assert found["content", False, False] > 3, "files that were copied"
    assert found["content", False, True] > 100, "files of container layers"


@pytest.mark.long
def test_the_seed_decides_about_all_rows(recorded: Path, tmp_path: Path) -> None:
    one, same, other = (
        sums(made(recorded, tmp_path / name, seed, machines=2, days=1))
        for name, seed in (("one", 1), ("same", 1), ("other", 2))
    )
    assert one == same
    assert one != other


def test_a_lake_with_rows_gets_no_fleet(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("generate", "--corpus", str(recorded), "--to", str(recorded))
    assert cli.main(words) == 1
    assert "a fleet needs a lake of its own" in capsys.readouterr().err
