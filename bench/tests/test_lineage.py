"""The command `lineage`: resumption, builds that differ, and the summary."""

import hashlib
import io
import sqlite3
import subprocess
import tarfile
from pathlib import Path

import pytest

from backstory_bench import lineage, projects


def test_builds_continue_after_the_existing_results(tmp_path: Path) -> None:
    workspace = lineage.Workspace(tmp_path, "backstory")
    workspace.results.mkdir()
    for name in ("lua-000003-lua.sum", "lua-cmake-000007-luac.sum", "hello-000000-libhello.a.sum", "stray"):
        (workspace.results / name).touch()
    done = lineage._builds_done(workspace)
    assert (done["lua"], done["lua-cmake"], done["hello"], done["zlib"]) == (4, 8, 1, 0)


def test_each_build_changes_one_line_of_the_included_file(tmp_path: Path) -> None:
    project = next(p for p in projects.PROJECTS if p.name == "zlib")
    header = tmp_path / "zconf.h"
    header.write_text("#define A\n")
    project.change(tmp_path, 1)
    project.change(tmp_path, 2)
    assert header.read_text() == "#define A\n// build 2\n"


def test_an_archive_with_a_wrong_digest_is_refused(tmp_path: Path) -> None:
    source = projects.Source("x/x/x.tar", hashlib.sha256(b"right").hexdigest())
    (tmp_path / "x.tar").write_bytes(b"wrong")
    with pytest.raises(ValueError, match="digest"):
        source.fetch(tmp_path)


def test_a_project_is_unpacked_without_the_archives_top_directory(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar", "w") as archive:
        entry = tarfile.TarInfo("p-1.0/src/a.c")
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"int"))
    source = projects.Source("p/p.tar", hashlib.sha256((tmp_path / "p.tar").read_bytes()).hexdigest())
    project = projects.Project(
        "p", (), source, lambda _: None, lambda home: home / "src/a.c", "//", lambda _: "true", ()
    )
    project.unpack(tmp_path / "home", tmp_path)
    assert (tmp_path / "home/src/a.c").read_text() == "int"


def test_the_summary_contains_the_promised_figures() -> None:
    rows = [lineage.Answer(f"r{i}", 1000 + i, float(i), 1.0) for i in range(101)]
    text = lineage.summary("m", 10_000_000, 120_000_000, rows)
    assert "| bytes per edge at rest | 12.0 |" in text
    assert "| 101, 1,000 to 1,100 |" in text
    assert "| 50.0 ms, 95.0 ms, 100.0 ms |" in text
    assert "| 1,000 and more | 101 | 50.0 ms, 1.0 ms |" in text


def _store(tmp_path: Path, edges: int) -> lineage.Workspace:
    """Makes a store with a number of edges, 20 results, and a stub of the program.

    The stub prints N links for the file `rN`.
    """
    program = tmp_path / "backstory"
    program.write_text(
        '#!/bin/sh\nfor result; do :; done\necho "$result" >> "${0%/*}/asked"\n'
        'case $result in *19) exit 1; esac\nseq "${result##*/r}" | sed "s/.*/\\"flow\\": /"\n'
    )
    program.chmod(0o755)
    workspace = lineage.Workspace(tmp_path, str(program))
    workspace.results.mkdir(exist_ok=True)
    workspace.store.mkdir(exist_ok=True)
    for number in range(20):
        (workspace.results / f"r{number}").touch()
    with sqlite3.connect(workspace.store / "graph.db") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS runs (edges)")
        connection.execute("INSERT INTO runs VALUES (?)", (edges,))
    return workspace


def test_an_interruption_loses_no_answer_and_repeats_no_question(tmp_path: Path) -> None:
    workspace, out = _store(tmp_path, 100), tmp_path / "out.csv"
    with pytest.raises(subprocess.CalledProcessError):
        lineage.ask(workspace, 20, 5, out)
    before = (tmp_path / "asked").read_text().split()
    assert len(out.read_text().splitlines()) == 2 + len(before) - 1
    with out.open("a") as file:
        file.write("r7,cut o")
    workspace = lineage.Workspace(tmp_path, str(tmp_path / "backstory"))
    (tmp_path / "backstory").write_text((tmp_path / "backstory").read_text().replace("exit 1", ":"))
    text = lineage.ask(workspace, 20, 5, out)
    asked = (tmp_path / "asked").read_text().split()
    assert len(asked) == 21 and len(set(asked)) == 20
    rows = out.read_text().splitlines()[2:]
    assert sorted(row.split(",")[0] for row in rows) == sorted(f"r{n}" for n in range(20))
    assert "| files asked for, edges of ancestry each | 15, 5 to 19 |" in text


def test_answers_from_another_store_are_not_overwritten(tmp_path: Path) -> None:
    workspace, out = _store(tmp_path, 100), tmp_path / "out.csv"
    out.write_text("# Linux cpus=2 edges=7 runs=1 graph.db=1\n")
    with pytest.raises(RuntimeError, match="another store"):
        lineage.ask(workspace, 3, 0, out)
    assert out.read_text() == "# Linux cpus=2 edges=7 runs=1 graph.db=1\n"
