"""What the command `lineage` relies on to resume and to make builds differ."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from backstory_bench import lineage, projects


def test_builds_go_on_after_the_results_that_are_there(tmp_path: Path) -> None:
    place = lineage.Place(tmp_path, "backstory")
    place.results.mkdir()
    for name in ("lua-000003-lua.sum", "lua-cmake-000007-luac.sum", "hello-000000-libhello.a.sum", "stray"):
        (place.results / name).touch()
    done = lineage._builds_done(place)
    assert (done["lua"], done["lua-cmake"], done["hello"], done["zlib"]) == (4, 8, 1, 0)


def test_each_build_changes_one_line_of_what_it_includes(tmp_path: Path) -> None:
    project = next(p for p in projects.PROJECTS if p.name == "zlib")
    header = tmp_path / "zconf.h"
    header.write_text("#define A\n")
    project.change(tmp_path, 1)
    project.change(tmp_path, 2)
    assert header.read_text() == "#define A\n// build 2\n"


def test_an_archive_of_another_content_is_refused(tmp_path: Path) -> None:
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


def test_the_summary_tells_the_promised_figures() -> None:
    rows = [(f"r{i}", 1000 + i, float(i), 1.0) for i in range(101)]
    text = lineage.summary("m", 10_000_000, 120_000_000, rows)
    assert "| bytes per edge at rest | 12.0 |" in text
    assert "| 101, 1,000 to 1,100 |" in text
    assert "| 50.0 ms, 95.0 ms, 100.0 ms |" in text
