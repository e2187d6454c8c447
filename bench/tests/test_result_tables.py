"""The command `tables`: tables of documents, made of results."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from backstory_bench import result_tables
from backstory_bench.result_tables import STORE, TABLES, made, main_tables, read

ROOT = Path(__file__).resolve().parents[2]


def block(page: str, name: str) -> str:
    """Returns what is at the place of a table."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->\n", page, re.DOTALL)
    assert found, f"the page has no place for the table {name}"
    return found[1].strip()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_a_page_is_made_of_the_results_that_it_names(name: str) -> None:
    table = TABLES[name]
    shown = block((ROOT / table.page).read_text(), name)
    files = re.findall(r"`bench/runs/([^`]+\.csv)`", shown)
    if not files:
        pytest.skip("its figures are older than the command that writes them to a file")
    results = read([ROOT / "bench" / "runs" / file for file in files])
    assert shown == "\n".join(made(table, results))


def write(path: Path, columns: str, *rows: str) -> Path:
    path.write_text("\n".join([columns, *rows, ""]))
    return path


def test_a_table_has_the_medians_of_each_engine_and_names_its_results(tmp_path: Path) -> None:
    columns = "engine,memory_mb,round,edges,graph_bytes,ingest_s,cpu_s"
    rows = [f"{engine},4,{number},9000,1,{number + 1},1" for engine in ("redb", "sqlite") for number in range(3)]
    file = write(tmp_path / "2026-11-28-engines-memory.csv", columns, *rows, "sqlite,128,0,9000,1,9,1")
    found = made(TABLES["engines-memory"], read([file]))
    assert found == [
        "| memory | SQLite | `redb` |",
        "| --- | ---: | ---: |",
        "| 4 MB | 4 | 4 |",
        "| 128 MB | 1 |  |",
        "",
        "Medians of 3 rounds (`bench/runs/2026-11-28-engines-memory.csv`).",
    ]


@pytest.mark.parametrize("kind", ["mounted", "tpcc", "engines-parts", "durability", "inspected"])
def test_the_note_of_the_program_before_the_names_changes_no_table(kind: str, tmp_path: Path) -> None:
    table = TABLES[kind]
    shown = block((ROOT / table.page).read_text(), kind)
    files = [ROOT / "bench" / "runs" / file for file in re.findall(r"`bench/runs/([^`]+\.csv)`", shown)]
    for file in files:
        (tmp_path / file.name).write_text(f"# backstory 0.1.0, commit 0123\n{file.read_text()}")
    assert made(table, read([tmp_path / file.name for file in files])) == made(table, read(files))


def test_the_parts_of_an_ingestion_are_lines_of_seconds(tmp_path: Path) -> None:
    columns = "engine,round,log_bytes,edges,graph_bytes,read_cpu_s,fold_cpu_s,engine_cpu_s,whole_cpu_s"
    file = write(tmp_path / "2026-11-28-engines-parts.csv", columns, "lsm,0,161000000,1000,6400,0.8,1,0.9,2.7")
    found = made(TABLES["engines-parts"], read([file]))
    assert found[0] == "| processor time, 1,000 edges, 161 MB | `lsm` |"
    assert found[2:7] == [
        "| read the log | 0.80 s |",
        "| fold it | 1.00 s |",
        "| the engine's own part | 0.90 s |",
        "| the whole | 2.70 s |",
        "| bytes per edge | 6.4 |",
    ]


def test_only_the_places_of_given_results_change(tmp_path: Path) -> None:
    page = tmp_path / STORE
    page.parent.mkdir(parents=True)
    places = ["engines", "engines-memory"]
    page.write_text("".join(f"<!-- {name} -->\nold {name}\n<!-- end of {name} -->\n" for name in places))
    columns = "engine,levels,round,log_bytes,edges,graph_bytes,ingest_s,cpu_s,questions_s,questions_cpu_s"
    file = write(tmp_path / "2026-11-28-engines.csv", columns, "lsm,5,0,2000000,1000,9000,0.5,1,1 2 3 4 5,4")
    assert main_tables(argparse.Namespace(results=[file], root=tmp_path)) == 0
    text = page.read_text()
    assert "old engines-memory" in text
    assert block(text, "engines").splitlines()[2:6] == [
        "| five levels, 2.0 MB: edges per second | 2,000 |",
        "| five levels: 50 questions | 5.00 s |",
        "| five levels: their processor time | 4.00 s |",
        "| five levels: bytes per edge | 9.0 |",
    ]


def test_a_file_without_results_is_refused_by_its_name(tmp_path: Path) -> None:
    empty = write(tmp_path / "2026-11-28-tpcc-postgres.csv", "server,warehouses,round,mode,tpmc")
    with pytest.raises(SystemExit, match=r"2026-11-28-tpcc-postgres\.csv has no results"):
        main_tables(argparse.Namespace(results=[empty], root=tmp_path))


def test_a_file_of_clients_that_pause_is_refused(tmp_path: Path) -> None:
    columns = "server,warehouses,round,mode,tpmc"
    paused = write(tmp_path / "2026-11-28-tpcc-postgres.csv", columns, "postgres,1,0,native-wait,12")
    with pytest.raises(SystemExit, match=r"tpcc-postgres\.csv has native-wait, a measurement with pauses"):
        read([paused])


def test_a_file_of_another_name_and_half_of_a_pair_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"engines\.csv is not DATE-KIND\.csv"):
        result_tables.kind_of(tmp_path / "engines.csv")
    columns = "server,warehouses,round,mode,tpmc"
    half = write(tmp_path / "2026-11-28-tpcc-postgres.csv", columns, "postgres,1,0,native,100")
    with pytest.raises(SystemExit, match="also needs a file DATE-tpcc-mariadb"):
        main_tables(argparse.Namespace(results=[half], root=tmp_path))
