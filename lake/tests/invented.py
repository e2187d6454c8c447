"""Small lakes that never existed, with many coincidences: in names, contents, moments and clocks.

A property that holds for thousands of them holds for the rules' corners, which recorded runs hardly
ever meet.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from backstory_lake.data_files import write
from backstory_lake.lake import Lake
from backstory_lake.tables import TABLES

SECOND = 10**9
#: Numbers from here on belong to no process.
UNNUMBERED = 1 << 30

Row = dict[str, Any]


class Invented:
    """The rows of a lake."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = defaultdict(list)

    def run(self, id: str, **facts: Any) -> int:
        """A run. Returns its number."""
        number = len(self.rows["runs"]) + 1
        row = {
            "run": id,
            "number": number,
            "started_ns": 0,
            "since_boot_ns": 0,
            "boot": "",
            "machine": "m1",
            "undone": False,
        }
        self._add("runs", number, id, row | facts)
        return number

    def process(self, run: int, **facts: Any) -> int:
        """A process of a run. Returns its key."""
        row = {"started_ns": 0, "ended_ns": 100, "pid": 1} | facts
        return self._keyed("processes", "process", run, row)

    def file(self, run: int, path: str, **facts: Any) -> int:
        """A version. Returns its key."""
        row = {"path": path, "kind": "file", "version": 0, "last": True} | facts
        return self._keyed("files", "file", run, row)

    def edge(self, process: int, file: int, how: str, since: int, until: int, **facts: Any) -> None:
        """A use of a version by a process of the same run."""
        flow = "generated" if how in ("write", "rename", "make") else "used"
        row = {"process": process, "file": file, "how": how, "flow": flow, "certainty": "seen"}
        row |= {"started_ns": since, "ended_ns": until}
        self._add("edges", process >> 32, self._id(process >> 32), row | facts)

    def link(self, table: str, **facts: Any) -> None:
        """A derivation or an inform."""
        number = next(key for name, key in facts.items() if name in ("file", "process")) >> 32
        self._add(table, number, self._id(number), facts)

    def written(self, lake: Path, runs: Collection[int] | None = None) -> Path:
        """Appends the rows to a lake: those of some runs, or all."""
        opened = Lake.open(str(lake), create=True)
        counted = Counter(row["number"] for row in self.rows["processes"])
        for row in self.rows["runs"]:
            row["processes"] = counted[row["number"]]
        for table in TABLES:
            rows = [row for row in self.rows[table.name] if runs is None or row["number"] in runs]
            if rows:
                opened.append(table, write(opened.table(table), table, _arrow(table, rows)))
        return lake

    def _id(self, number: int) -> str:
        return str(self.rows["runs"][number - 1]["run"])

    def _keyed(self, table: str, key: str, run: int, row: Row) -> int:
        local = sum(1 for one in self.rows[table] if one["number"] == run)
        made = run << 32 | local
        self._add(table, run, self._id(run), row | {key: made})
        return made

    def _add(self, table: str, number: int, run: str, row: Row) -> None:
        common = {"day": date(1970, 1, 1), "bucket": 0, "shipment": 1, "number": number, "run": run}
        self.rows[table].append(row | common)

    def connection(self, process: int, role: str, name: int, reply: int, **facts: Any) -> None:
        """An end of a connection, whose entities the process has."""
        row = {"process": process, "role": role, "file": name, "reply": reply, "network": 0}
        self._add("connections", process >> 32, self._id(process >> 32), row | facts)


def _arrow(table: Any, rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in table.arrow.names} for row in rows], table.arrow
    )


def coincidences(seed: int, runs: int = 7) -> Invented:
    """A random lake of two machines, one of which may be a clone."""
    choice = random.Random(seed)
    made = Invented()
    for at in range(runs):
        began = choice.randrange(5) * SECOND
        number = made.run(
            f"run{at}",
            machine=choice.choice(["m1", "m2"]),
            boot=choice.choice(["b1", "b1", "b2", ""]),
            started_ns=began,
            since_boot_ns=choice.choice([0, SECOND, 3 * SECOND]),
            source=choice.choice([None, None, "server"]),
            undone=choice.random() < 0.1,
        )
        _fill(made, choice, number, began)
    return made


def _fill(made: Invented, choice: random.Random, run: int, began: int) -> None:
    def moment() -> int:
        return began + choice.randrange(12) * SECOND // 2

    def interval() -> dict[str, int]:
        ends = sorted((moment(), moment()))
        return {"started_ns": ends[0], "ended_ns": ends[1]}

    processes = [
        made.process(run, pid=choice.choice([1, 2, UNNUMBERED + 1]), **interval())
        for _ in range(choice.randint(1, 3))
    ]
    files = [_version(made, choice, run, moment) for _ in range(choice.randint(2, 6))]
    for _ in range(choice.randint(2, 9)):
        ends = interval()
        how = choice.choice(["read", "read", "write", "write", "exec", "rename", "stat"])
        made.edge(
            choice.choice(processes),
            choice.choice(files),
            how,
            ends["started_ns"],
            ends["ended_ns"],
            certainty=choice.choice(["seen", "seen", "possible"]),
        )
    for _ in range(choice.randint(0, 3)):
        _connection(made, choice, run, processes, moment)
    for _ in range(choice.randint(0, 2)):
        file, origin = choice.choice(files), choice.choice(files)
        made.link(
            "derivations",
            file=file,
            origin=origin,
            process=choice.choice(processes),
            time_ns=moment(),
        )
    for _ in range(choice.randint(0, 2)):
        made.link(
            "informs",
            process=choice.choice(processes),
            origin=choice.choice(processes),
            how=choice.choice(["fork", "exec", "wait"]),
            time_ns=moment(),
        )


#: Servers' addresses: where each is unique, and when the clocks of machines are good enough.
SERVERS = {"203.0.113.1:80": "global", "10.0.0.1:80": "private", "127.0.0.1:80": "loopback"}
MINUTE = 60 * SECOND


def _connection(
    made: Invented, choice: random.Random, run: int, processes: list[int], moment: Any
) -> None:
    """One end of a connection, which is perhaps used."""
    server = choice.choice(list(SERVERS))
    client = f"198.51.100.1:{choice.randint(1, 3)}"
    role = choice.choice(["client", "server"])
    name = made.file(run, f"tcp:{server}", kind="socket")
    reply = made.file(run, f"tcp:{server} (reply)", kind="socket")
    process = choice.choice(processes)
    ends = (client, server) if role == "client" else (server, client)
    began = moment() + choice.choice([0, 0, 0, MINUTE, 10 * MINUTE])
    facts = {"own": ends[0], "other": ends[1], "scope": SERVERS[server], "began_ns": began}
    made.connection(process, role, name, reply, network=choice.randrange(3), **facts)
    sent, got = (name, reply) if role == "client" else (reply, name)
    for file, how in ((sent, "write"), (got, "read")):
        if choice.random() < 0.8:
            since, until = sorted((moment(), moment()))
            made.edge(process, file, how, since, until)


def _version(made: Invented, choice: random.Random, run: int, moment: Any) -> int:
    kind = choice.choice(["file", "file", "file", "socket", "socket", "resource", "device"])
    version = choice.randrange(3)
    if kind == "socket":
        other = choice.randrange(4)
        name = choice.choice(["tcp:10.0.0.1:9", f"ssh:box/run{other}", "unix:/run/x"])
        return made.file(run, name + choice.choice(["", " (reply)"]), kind=kind)
    if kind == "resource":
        return made.file(run, choice.choice(["thing:1", "thing:2"]), kind=kind, version=version)
    if kind == "device":
        return made.file(run, choice.choice(["/dev/null", "/dev/sda"]), kind=kind)
    return made.file(
        run,
        choice.choice("abc"),
        version=version,
        device=1,
        inode=choice.randrange(3),
        size=choice.choice([10, 100]),
        modified_ns=moment(),
        changed_ns=moment(),
        born_ns=choice.choice([0, 5]),
        digest=choice.choice(["d1", "d2", None]),
    )
