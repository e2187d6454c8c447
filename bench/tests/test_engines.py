"""The command `engines`: its workload and its table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backstory_bench import engines


def test_the_tree_of_the_paper_has_a_file_in_each_directory_of_five_levels() -> None:
    assert len(engines.Tree(14, 5).paths()) == 1 + 14 + 14**2 + 14**3 + 14**4


def test_the_script_copies_each_file_from_the_parent_of_its_directory(tmp_path: Path) -> None:
    tree = engines.Tree(2, 3)
    script = tree.write(tmp_path, 10_000, 4096)
    assert len(script.read_text().splitlines()) == 6
    subprocess.run(["sh", script], cwd=tmp_path, check=True)
    contents = {(tmp_path / path / "file").read_bytes() for path in tree.paths()}
    assert len(contents) == 1 and len(contents.pop()) == 10_000


def test_the_table_has_the_median_of_the_rounds_and_their_spread() -> None:
    def row(seconds: str, asked: str) -> dict[str, str]:
        values = ["lsm", "5", "0", "2000000", "1000", "9000", seconds, "1", asked, "1"]
        return dict(zip(engines.FIELDS, values, strict=True))

    rows = [row("1", "1 2 3 4 5"), row("2", "2 3 4 5 6"), row("4", "3 4 5 6 7")]
    last = engines.summary(rows)[-1]
    assert last == "| lsm | 5 | 2.0 | 500 | 250 to 1,000 | 9.0 | 2.00 | 3.00 | 4.00 | 5.00 | 6.00 |"


def test_five_levels_are_measured_and_a_tree_without_copies_is_refused() -> None:
    assert engines.depths("3,4,5") == [3, 4, 5]
    with pytest.raises(SystemExit, match="at least 2 levels"):
        engines.depths("1,5")


def test_each_store_on_a_server_has_a_database_that_is_new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Server:
        def __init__(self) -> None:
            self.databases: list[str] = []

        def execute(self, _data: Path, _port: int, statement: str) -> None:
            words = statement.split()
            if words[0] == "CREATE":
                self.databases.append(words[2])
            elif words[4] in self.databases:
                self.databases.remove(words[4])

    server = Server()
    monkeypatch.setattr(engines, "SERVERS", {"postgres": server})
    databases = engines.ServerDatabases(tmp_path, 5432)
    seen = set()
    for _ in range(3):
        name = databases.connection().rsplit("/", 1)[1]
        assert server.databases == [name] and name not in seen
        seen.add(name)
