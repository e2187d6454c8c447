"""A printed lineage is one screen: the user's own files first, and nothing left out silently."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Machine, command

from backstory_lake import screen
from backstory_lake.printing import PAGE, Answer

NAMES = ["from_process", "from_file", "to_process", "to_file", *screen.SHOWN]


def link(path: str, process: int, file: int | None = 1) -> tuple[Any, ...]:
    """A link from a file, or from a process without a file, to a process."""
    ends = (None if file else 7, file, process, None)
    return (*ends, "vm", path, "vm", f"cat {process}", "used", "read", "seen")


def printed(rows: list[tuple[Any, ...]], everything: bool) -> list[str]:
    """The lines below the names of the columns."""
    out = io.StringIO()
    screen.links(Answer(NAMES, iter(rows)), everything, out)
    return out.getvalue().splitlines()[1:]


def test_links_of_system_files_are_counted_and_not_printed() -> None:
    rows = [link("/home/ann/a", 1), link("/usr/lib/b.so", 2), link("/usr/local/bin/c", 3)]
    # The command of a process is no file, whatever its program is.
    rows.append(link("/usr/bin/python3 d.py", 4, None))
    lines = printed(rows, everything=False)
    assert [line.split()[1] for line in lines[:-1]] == [
        *("/home/ann/a", "/usr/local/bin/c", "/usr/bin/python3")
    ]
    assert lines[-1] == "1 more link with files of the system: `--all` prints all links"
    assert len(printed(rows, everything=True)) == len(rows)


def test_a_long_lineage_ends_with_the_number_of_further_links() -> None:
    rows = [link("/home/ann/a", process) for process in range(100)]
    lines = printed(rows, everything=False)
    assert len(lines) == screen.ROWS + 1
    assert lines[-1] == "60 more links: `--all` prints all links"
    assert len(printed(rows, everything=True)) == 100


def test_paths_and_commands_leave_room_for_the_other_columns() -> None:
    deep = "/home/ann/" + "directory/" * 20 + "report.txt"
    row = link(deep, 1)
    command = (*row[:7], "cc " + "-I/usr/include " * 40, *row[8:])
    line = printed([command], everything=False)[0]
    assert len(line) <= PAGE, line
    # A path is known by its end, and a command by its beginning.
    assert "/report.txt " in line and " cc -I/usr/include" in line, line


def test_a_short_end_leaves_its_room_to_the_other_one() -> None:
    path = "/home/ann/project/report.txt"
    assert f" {path} " in printed([link(path, 1)], everything=False)[0]


@pytest.mark.long
def test_links_nearest_to_the_question_come_first_in_each_direction(
    machine: Machine, lake: Path
) -> None:
    machine.record("cat in > one; cat one > two; cat two > three")
    machine.ship(lake)
    for name, ways, order in (
        ("three", (), ["three", "two", "one"]),
        ("in", ("--forth",), ["one", "two", "three"]),
    ):
        words = ("lineage", "--lake", str(lake), "--path", str(machine.directory / name), *ways)
        shown = command(*words)
        assert shown.returncode == 0, shown.stderr
        found = json.loads(command(*words, "--json").stdout)["links"]
        made = [row["target"].rsplit("/", 1)[-1] for row in found if row["to_file"] is not None]
        # A process has a link for each kind of operation.
        assert list(dict.fromkeys(name for name in made if name in order)) == order, found
        assert command(*words).stdout == shown.stdout


def test_system_files_are_those_of_the_program() -> None:
    file = Path(__file__, "../../../crates/workflow/tools.toml").resolve()
    paths = tomllib.loads(file.read_text())["paths"]
    assert tuple(paths["system"]) == screen.SYSTEM
    assert tuple(paths["not_system"]) == screen.NOT_SYSTEM
