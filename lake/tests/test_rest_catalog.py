"""A lake in a REST catalog has the answers of one in a directory.

The server is Iceberg's own, with which its clients are tested.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import PACKAGE, Machine, answers, command

JARS = PACKAGE.parent / ".venv" / "rest-catalog" / "jars"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not JARS.exists(), reason="needs .venv/rest-catalog (scripts/setup all)"),
]

LAKE = "catalog:team"
#: Seconds in which the server must answer.
PATIENCE = 120
QUESTIONS = (
    "SELECT run, command FROM runs ORDER BY ALL",
    "SELECT run, path, digest FROM files ORDER BY ALL",
    """SELECT flow, how, count(*) FROM lineage((SELECT list(file) FROM files
      WHERE path LIKE '%/last'), 'back', NULL) GROUP BY ALL ORDER BY ALL""",
)


class RestCatalog(NamedTuple):
    """A server of a catalog, and the configuration that names it."""

    home: Path
    server: subprocess.Popen[bytes]

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Starts `backstory-lake`."""
        path = ":".join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, "-m", "backstory_lake.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYICEBERG_HOME": str(self.home), "PYTHONPATH": path},
            text=True,
        )

    def lake(self, *words: str, status: int = 0) -> str:
        """Runs `backstory-lake`, and returns what it prints."""
        begun = self.begin(*words)
        printed = begun.communicate()[0]
        assert begun.returncode == status and "Traceback" not in printed, printed
        return printed

    def shipping(self, machine: Machine) -> subprocess.Popen[str]:
        """Begins to ship a store."""
        return self.begin("ship", "--store", str(machine.store), "--to", LAKE)


def free_port() -> int:
    """A port of the loopback that no program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RestCatalog]:
    """A server with an empty catalog."""
    home, port = tmp_path / "home", free_port()
    home.mkdir()
    url = f"http://127.0.0.1:{port}"
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  team:\n    type: rest\n    uri: {url}\n")
    options = {
        "CATALOG_URI": f"jdbc:sqlite:{home}/catalog.sqlite",
        "CATALOG_WAREHOUSE": str(tmp_path / "warehouse"),
        "CATALOG_REST_PORT": str(port),
    }
    server = subprocess.Popen(
        ["java", "-cp", f"{JARS}/*", "org.apache.iceberg.rest.RESTCatalogServer"],
        env=os.environ | options,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + PATIENCE
        while not _answers(f"{url}/v1/config"):
            assert server.poll() is None and time.monotonic() < until, "no server"
            time.sleep(0.1)
        yield RestCatalog(home, server)
    finally:
        server.kill()
        server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_lake_in_a_rest_catalog_has_the_answers_of_one_in_a_directory(
    machine: Machine, lake: Path, catalog: RestCatalog
) -> None:
    machine.record("sort in > mid; head -1 mid > out")
    gone = machine.record("cat out out out > last; cp last whistleblower")
    # Both begin with an empty catalog, and send the same runs.
    begun = [catalog.shipping(machine) for _ in range(2)]
    printed = [one.communicate()[0] for one in begun]
    assert [one.returncode for one in begun] == [0, 0], printed
    machine.ship(lake)
    for sql, expected in zip(QUESTIONS, answers(lake, *QUESTIONS)):
        assert len(expected) > 1
        same = command("query", "--lake", str(lake), "--csv", sql).stdout
        assert catalog.lake("query", "--lake", LAKE, "--csv", sql) == same, sql
    assert "none has a row" in catalog.lake("forget", "--lake", LAKE, gone)
    catalog.lake("compact", "--lake", LAKE)
    assert gone not in catalog.lake("query", "--lake", LAKE, "SELECT run FROM runs")
    assert "0 runs shipped" in catalog.lake("ship", "--store", str(machine.store), "--to", LAKE)


def test_a_catalog_that_does_not_answer_is_an_error_in_one_line(
    machine: Machine, catalog: RestCatalog
) -> None:
    machine.record("sort in > out")
    catalog.server.kill()
    catalog.server.wait()
    for words in (["query", "--lake", LAKE, "FROM runs"], ["compact", "--lake", LAKE]):
        ended = catalog.lake(*words, status=1)
        assert len(ended.splitlines()) == 1 and "127.0.0.1" in ended, ended
