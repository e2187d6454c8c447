"""A recorded client meets the server that another machine watched, by its address and port."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import answer, answers
from invented import MINUTE, SECOND, UNNUMBERED, Invented

#: Where the addresses of servers are unique.
SCOPES = {"203.0.113.9": "global", "10.0.0.9": "private", "127.0.0.1": "loopback"}


@dataclass
class Database:
    """A client that executes a script, and the watch of its server, which saw a table change."""

    address: str = "203.0.113.9"
    #: The boot and the machine of the client. Those of the server are `b2` and `m2`.
    client: tuple[str, str] = ("b1", "m1")
    #: When the client began to connect. The session existed at ten minutes.
    began: int = 10 * MINUTE
    #: The port in the server's log.
    port: int = 4711
    made: Invented = field(default_factory=Invented)

    def __post_init__(self) -> None:
        made, server = self.made, f"{self.address}:5432"
        boot, machine = self.client
        self.run = made.run("client", boot=boot, machine=machine)
        self.process = made.process(self.run, pid=7, started_ns=0, ended_ns=20 * MINUTE)
        self.script = made.file(self.run, "/home/ann/fill.sql")
        made.edge(self.process, self.script, "read", self.began, self.began)
        self.ends = self._entities(self.run, server)
        self.end(self.process, self.began)
        watch = made.run("watch", boot="b2", machine="m2", source="postgres")
        session = made.process(watch, pid=UNNUMBERED + 1, ended_ns=20 * MINUTE)
        work = made.process(watch, pid=UNNUMBERED + 2, parent=session, ended_ns=20 * MINUTE)
        requests, replies = self._entities(watch, server)
        moment = 10 * MINUTE
        made.edge(work, requests, "read", moment, moment + SECOND)
        made.edge(work, replies, "write", moment, moment + SECOND)
        self.table = made.file(watch, "postgres://h:5432/bank/accounts", kind="resource", version=1)
        made.edge(work, self.table, "write", moment + SECOND, moment + SECOND)
        made.connection(
            session, "server", requests, replies, own=server, other=f"198.51.100.1:{self.port}",
            scope=SCOPES[self.address], began_ns=moment,
        )  # fmt: skip

    def _entities(self, run: int, server: str) -> tuple[int, int]:
        name = f"tcp:{server}"
        return (
            self.made.file(run, name, kind="socket"),
            self.made.file(run, f"{name} (reply)", kind="socket"),
        )

    def end(self, process: int, began: int) -> None:
        """The client's end of a connection, which the process uses."""
        self.made.edge(process, self.ends[0], "write", began, began + SECOND)
        self.made.edge(process, self.ends[1], "read", began, began + SECOND)
        self.made.connection(
            process, "client", *self.ends, own="198.51.100.1:4711", other=f"{self.address}:5432",
            scope=SCOPES[self.address], began_ns=began,
        )  # fmt: skip

    def scripts(self, lake: Path) -> list[str]:
        """The certainties with which the table leads to the script, and the script to the table."""
        self.made.written(lake)
        asked = {
            f"{word} {direction}": f"SELECT count(*) FROM lineage([{start}], '{direction}', NULL, "
            f"possible := {possible}) WHERE {there}"
            for possible, word in ((False, "seen"), (True, "possible"))
            for start, there, direction in (
                (self.table, f"from_file = {self.script}", "back"),
                (self.script, f"to_file = {self.table}", "forth"),
            )
        }
        found = answers(lake, *asked.values())
        return [word for word, rows in zip(asked, found) if rows != [(0,)]]


SEEN = ["seen back", "seen forth", "possible back", "possible forth"]
POSSIBLE = ["possible back", "possible forth"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, SEEN),
        ({"address": "10.0.0.9"}, POSSIBLE),
        ({"address": "127.0.0.1"}, []),
        ({"address": "127.0.0.1", "client": ("b2", "m2")}, SEEN),
        ({"address": "127.0.0.1", "client": ("b2", "m1")}, POSSIBLE),
        ({"port": 4712}, []),
        # The clock of the client is ahead, and then too far ahead.
        ({"began": 11 * MINUTE}, SEEN),
        ({"began": 11 * MINUTE + SECOND}, []),
        # On one machine, a client connects before its session begins. Without a client by its port,
        # each one of that time is possible.
        ({"began": 10 * MINUTE + SECOND, "client": ("b2", "m2")}, POSSIBLE),
        # The session began long after the connection, so another one may have had the port.
        ({"began": 8 * MINUTE}, POSSIBLE),
    ],
)
def test_a_client_meets_the_watched_server_of_another_machine_by_its_port(
    lake: Path, facts: dict[str, Any], expected: list[str]
) -> None:
    assert Database(**facts).scripts(lake) == expected


def test_a_client_that_shares_its_connection_is_possible(lake: Path) -> None:
    forks = Database()
    child = forks.made.process(forks.run, pid=8, ended_ns=20 * MINUTE)
    forks.made.link(
        "informs", process=child, origin=forks.process, how="fork", time_ns=forks.began + 1
    )
    assert forks.scripts(lake / "fork") == POSSIBLE
    before = Database()
    child = before.made.process(before.run, pid=8, ended_ns=20 * MINUTE)
    before.made.link("informs", process=child, origin=before.process, how="fork", time_ns=1)
    assert before.scripts(lake / "before") == SEEN
    other = Database()
    child = other.made.process(other.run, pid=8, ended_ns=20 * MINUTE)
    other.made.edge(child, other.ends[0], "write", 0, MINUTE)
    assert other.scripts(lake / "other") == POSSIBLE


def test_the_newest_connection_from_a_port_is_that_of_the_session(lake: Path) -> None:
    again = Database(client=("b2", "m2"))
    older = again.made.run("older", boot="b2", machine="m2")
    process = again.made.process(older, pid=9, ended_ns=20 * MINUTE)
    again.run, again.ends = older, again._entities(older, f"{again.address}:5432")
    again.end(process, 9 * MINUTE)
    secret = again.made.file(older, "/home/bob/other.sql")
    again.made.edge(process, secret, "read", 9 * MINUTE, 9 * MINUTE)
    assert again.scripts(lake) == SEEN
    found = answer(lake, f"SELECT from_file FROM lineage([{again.table}], 'back', NULL)")
    assert (secret,) not in found
