"""`ship`: appends the runs of a store to a lake, each exactly once.

A shipment first appends the rows of its runs to all other tables, and then a row for each run to
`runs`. A row of the other tables counts only if `runs` has its run's number and shipment. So an
interrupted shipment adds nothing, and the next one sends the runs again. The last commit succeeds
only if no other shipment has added one of the runs in between.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import EqualTo, In
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from . import batches, erasure, journal
from .batches import Batch, ShippedRun
from .data_files import write
from .errors import LakeError, MisuseError
from .lake import RETAINED_PROPERTY, Lake
from .privacy import Config, Privacy
from .program import MOST_RUNS, Program
from .reading import scan
from .tables import FORMAT, RUNS

#: Processes in a shipment. A process has some hundred edges.
MOST_PROCESSES = 20_000
#: Seconds that a shipment may last: `upkeep` takes older unpublished rows for interrupted ones.
LONGEST = 43_200
#: The facts that identify a run beside its id.
IDENTITY = ("started_ns", "boot", "uid")


@dataclass
class Shipped:
    """The result of a `ship`."""

    sent: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    #: Runs that began before the first day that the lake keeps.
    expired: list[str] = field(default_factory=list)
    #: Runs of the store whose id another run has in the lake.
    clashes: list[str] = field(default_factory=list)
    #: True if another machine shipped under this store's name.
    cloned: bool = False
    #: Other machines of the lake that have the name of one of the runs' hosts.
    namesakes: list[str] = field(default_factory=list)
    #: Runs that were erased from the lake, because the store has lost them.
    erased: list[str] = field(default_factory=list)


def ship(
    program: Program, lake: Lake, wanted: list[str], config: Config, forget: bool = False
) -> Shipped:
    """Ships the wanted runs, or all that have ended.

    With `forget`, the runs that this store sent and no longer has are erased from the lake.
    """
    done = Shipped()
    stored = batches.run_rows(program)
    rows = _retained(lake.table(RUNS), _wanted(stored, wanted), done)
    with journal.opened(batches.store_directory(program), lake.identity) as sender:
        done.cloned = _is_cloned(lake.table(RUNS), sender)
        if done.cloned:
            sender.begin_anew()
        elif forget:
            done.erased = _lost(lake.table(RUNS), sender, stored)
            if done.erased or erasure.pending(lake):
                erasure.forget(lake, done.erased)
        for part in _parts(rows):
            _ship_part(program, lake, part, Privacy(config), config, sender, done)
        done.namesakes = _namesakes(lake.table(RUNS), rows, sender.machine)
    return done


def _wanted(rows: list[dict[str, Any]], wanted: list[str]) -> list[dict[str, Any]]:
    if not wanted:
        return rows
    found = []
    for word in wanted:
        matching = [row for row in rows if row["name"] == word or row["run"].startswith(word)]
        exact = [row for row in matching if row["run"] == word] or matching
        if len(exact) != 1:
            raise MisuseError(f"{word}: {'several runs' if exact else 'no run that has ended'}")
        found += exact
    return found


def _retained(table: Table, rows: list[dict[str, Any]], done: Shipped) -> list[dict[str, Any]]:
    first = table.properties.get(RETAINED_PROPERTY, "")
    kept = [row for row in rows if not first or str(ShippedRun(row, 0).day) >= first]
    ids = {row["run"] for row in kept}
    done.expired = [row["run"] for row in rows if row["run"] not in ids]
    return kept


def _parts(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    processes = 0
    for row in rows:
        if part and (len(part) >= MOST_RUNS or processes + row["processes"] > MOST_PROCESSES):
            yield part
            part, processes = [], 0
        part.append(row)
        processes += row["processes"]
    if part:
        yield part


def _ship_part(
    program: Program,
    lake: Lake,
    rows: list[dict[str, Any]],
    privacy: Privacy,
    config: Config,
    sender: journal.Journal,
    done: Shipped,
) -> None:
    table = lake.table(RUNS)
    rows = _absent(table, rows, done)
    if not rows:
        return
    numbers = _free_numbers(table, len(rows))
    runs = [ShippedRun(row, number) for row, number in zip(rows, numbers)]
    # Iceberg's numbers have a sign.
    shipment = secrets.randbits(63)
    sender.add(shipment)
    began = time.monotonic()
    batch = Batch(program, runs, shipment, privacy)
    for of, new in batch.tables():
        if len(new):
            lake.append(of, write(lake.table(of), of, new))
    facts = {
        "machine": sender.machine,
        "owner": config.owner,
        "sensitivity": config.sensitivity,
        "format": FORMAT,
        "shipped_us": time.time_ns() // 1000,
    }
    if time.monotonic() - began > LONGEST:
        raise LakeError("the shipment took half a day, which is too long; ship fewer runs at once")
    _publish(lake, batch.runs(facts), done)


def _publish(lake: Lake, rows: pa.Table, done: Shipped) -> None:
    """Adds the rows to `runs` that no other shipment has added."""
    sent: list[str] = []

    def unsent(table: Table) -> list[DataFile]:
        nonlocal sent
        found = Shipped()
        left = _absent(table, rows.to_pylist(), found)
        sent = [row["run"] for row in left]
        if {row["number"] for row in left} & _numbers(table, [row["number"] for row in left]):
            raise LakeError(
                "another machine took the same number for a run at this moment; try again"
            )
        done.present += found.present
        done.forgotten += found.forgotten
        done.clashes += found.clashes
        return write(table, RUNS, pa.Table.from_pylist(left, RUNS.arrow)) if left else []

    lake.commit(RUNS, unsent)
    done.sent += sent


def _absent(table: Table, rows: list[dict[str, Any]], done: Shipped) -> list[dict[str, Any]]:
    """The rows whose runs the lake does not have. Says in `done` what became of the others."""
    condition = In("run", [row["run"] for row in rows])
    columns = ("run", "forgotten", *IDENTITY)
    found = scan(table, columns, condition).to_pylist()
    known = {row["run"]: row for row in found}
    absent = []
    for row in rows:
        other = known.get(row["run"])
        if other is None:
            absent.append(row)
        elif other["forgotten"]:
            done.forgotten.append(row["run"])
        elif all(other[name] == row[name] for name in IDENTITY):
            done.present.append(row["run"])
        else:
            done.clashes.append(row["run"])
    return absent


def _free_numbers(table: Table, count: int) -> list[int]:
    while True:
        numbers = [secrets.randbelow(batches.NUMBERS) for _ in range(count)]
        if len(set(numbers)) == count and not _numbers(table, numbers):
            return numbers


def _numbers(table: Table, numbers: list[int]) -> set[int]:
    found = scan(table, ("number",), In("number", numbers))
    return set(found["number"].to_pylist())


def _is_cloned(table: Table, sender: journal.Journal) -> bool:
    """True if the lake has a shipment under the sender's name that the sender did not make."""
    own = EqualTo("machine", sender.machine)
    found = scan(table, ("shipment",), own)
    return not set(found["shipment"].to_pylist()) <= sender.shipments


def _lost(table: Table, sender: journal.Journal, stored: list[dict[str, Any]]) -> list[str]:
    """The runs that this store sent, and that it no longer has. Erased ones have no machine."""
    own = EqualTo("machine", sender.machine)
    sent = scan(table, ("run",), own)["run"].to_pylist()
    return sorted(set(sent) - {row["run"] for row in stored})


def _namesakes(table: Table, rows: list[dict[str, Any]], machine: str) -> list[str]:
    hosts = sorted({row["host"] for row in rows})
    if not hosts:
        return []
    columns = ("host", "machine", "forgotten")
    same = scan(table, columns, In("host", hosts)).to_pylist()
    others = {(row["host"], row["machine"]) for row in same if row["machine"] != machine}
    own = {row["host"] for row in same if row["machine"] == machine}
    return sorted(f"{host} ({other})" for host, other in others if host in own)
