"""Measures the processor time that the form of PostgreSQL's log adds to a statement.

A statement is one of the 20 of a new order of TPC-C, prepared. In each round, every form has a turn
of some orders, in random order. Two servers run: one whose log has a process that collects it, and
one that writes into a file. A form is compared with the same server of the same round, whose log
has no statement.

The kernel counts the processor time of the backend and of the collecting process
(`/proc/PID/schedstat`). Of the orders of a turn, the 15th percentile is taken: other programs only
make an order longer.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from . import libpq, progress
from .database_servers import PATIENCE_S, SERVERS, DatabaseServer, Recording
from .report import write_rows
from .tpcc import prepare

FIELDS = ["form", "collector", "round", "orders", "backend_us", "collector_us"]
STATEMENTS = 20
LINES = 10
"""The lines of an order."""
PART = 0.15
NO_STATEMENTS = "no statements"
DEFAULTS = {
    "log_destination": "stderr",
    "log_statement": "none",
    "log_duration": "off",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length": "-1",
}
"""The settings that differ between forms."""
ALL = {"log_statement": "all"}
CSV = ALL | {"log_destination": "csvlog"}
PREFIX = r"%n\t%c\t%l\t%v\t%x\t%b\t%r\t%u\t%d\t%a\t"
"""The same facts in a plain log as in the others."""


@dataclass(frozen=True)
class Form:
    """A form of the log: the settings that are not those of `DEFAULTS`."""

    name: str
    settings: Mapping[str, str]
    collector: bool = True


FORMS = (
    Form(NO_STATEMENTS, {"log_destination": "csvlog"}),
    Form("csvlog, with log_duration", CSV | {"log_duration": "on"}),
    Form("csvlog", CSV),
    Form("csvlog, by log_min_duration_statement", CSV | {"log_statement": "none", "log_min_duration_statement": "0"}),
    Form("jsonlog", ALL | {"log_destination": "jsonlog"}),
    Form("plain", ALL),
    Form("csvlog, without parameters", CSV | {"log_parameter_max_length": "0"}),
    Form(NO_STATEMENTS, {}, collector=False),
    Form("plain", ALL, collector=False),
    Form("plain, without parameters", ALL | {"log_parameter_max_length": "0"}, collector=False),
)


class Executes(Protocol):
    """A session, as an order uses it."""

    def execute(self, text: str) -> str | None: ...

    def prepared(self, text: str, *values: object) -> str | None: ...


def _marks(count: int, first: int = 1) -> str:
    return ",".join(f"${number}" for number in range(first, first + count))


def order(session: Executes, draw: random.Random) -> None:
    """Makes a new order, with the statements of go-tpc."""
    district, customer = draw.randint(1, 10), draw.randint(1, 3000)
    items = sorted(draw.sample(range(1, 100_001), LINES))
    session.execute("BEGIN")
    session.prepared(
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse "
        "WHERE w_id = $1 AND c_w_id = w_id AND c_d_id = $2 AND c_id = $3",
        1,
        district,
        customer,
    )
    number = session.prepared(
        "SELECT d_next_o_id, d_tax FROM district WHERE d_id = $1 AND d_w_id = $2 FOR UPDATE", district, 1
    )
    session.prepared("UPDATE district SET d_next_o_id = $1 + 1 WHERE d_id = $2 AND d_w_id = $3", number, district, 1)
    session.prepared(
        f"INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ({_marks(7)})",
        number,
        district,
        1,
        customer,
        "2026-11-27 12:00:00",
        LINES,
        1,
    )
    session.prepared(f"INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ({_marks(3)})", number, district, 1)
    session.prepared(f"SELECT i_price, i_name, i_data, i_id FROM item WHERE i_id IN ({_marks(LINES)})", *items)
    pairs = ",".join(f"({_marks(2, 1 + 2 * line)})" for line in range(LINES))
    session.prepared(
        f"SELECT s_i_id, s_quantity, s_data, s_dist_01 FROM stock WHERE (s_w_id, s_i_id) IN ({pairs}) FOR UPDATE",
        *(value for item in items for value in (1, item)),
    )
    for item in items:
        session.prepared(
            "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, s_order_cnt = s_order_cnt + 1, "
            "s_remote_cnt = s_remote_cnt + $3 WHERE s_i_id = $4 AND s_w_id = $5",
            draw.randint(10, 100),
            5,
            0,
            item,
            1,
        )
    rows = ",".join(f"({_marks(9, 1 + 9 * line)})" for line in range(LINES))
    values = [
        value
        for line, item in enumerate(items, 1)
        for value in (number, district, 1, line, item, 1, 5, "12.5", "abcdefghijklmnopqrstuvwx")
    ]
    session.prepared(
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, "
        f"ol_amount, ol_dist_info) VALUES {rows}",
        *values,
    )
    session.execute("COMMIT")


def configuration(form: Form) -> str:
    """Returns the file of settings of a server."""
    own = {
        "logging_collector": "on" if form.collector else "off",
        "log_directory": "log",
        "log_rotation_size": "0",
        "log_line_prefix": PREFIX,
        # A session keeps these, and the sessions stay.
        "log_connections": "on",
        "log_disconnections": "on",
        "autovacuum": "off",
        "synchronous_commit": "off",
    }
    return "".join(f"{name} = '{value}'\n" for name, value in (own | DEFAULTS | dict(form.settings)).items())


def processor_us(process: int | None) -> float:
    """Returns the processor time that a process has used. 0 without a process."""
    if process is None:
        return 0.0
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1000


def collecting(server: int) -> int | None:
    """Returns the process that collects the log of a server."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    commands = ((int(child), Path(f"/proc/{child}/cmdline").read_bytes()) for child in children)
    return next((child for child, command in commands if b"logger" in command), None)


@dataclass(frozen=True)
class Running:
    """A server, with a session that makes the orders and one that looks at settings."""

    settings: Path
    session: libpq.Session
    control: libpq.Session
    collector: int | None

    def take(self, form: Form) -> None:
        """Changes the settings, and waits until both sessions have them."""
        self.settings.write_text(configuration(form))
        self.control.execute("SELECT pg_reload_conf()")
        wanted = DEFAULTS | dict(form.settings)
        deadline = time.monotonic() + PATIENCE_S
        for each in (self.control, self.session):
            while any(each.execute(f"SHOW {name}") != value for name, value in wanted.items()):
                if time.monotonic() > deadline:
                    raise SystemExit(f"backstory-bench: PostgreSQL does not take the settings of {form.name}")
                time.sleep(0.02)

    def turn(self, form: Form, orders: int, seed: int) -> tuple[float, float]:
        """Returns the processor time (µs) of a statement: of the backend and of the collector."""
        self.take(form)
        draw = random.Random(seed)
        # The first order after a change of settings takes longer.
        order(self.session, draw)
        began = processor_us(self.collector)
        each = []
        for _ in range(orders):
            before = processor_us(self.session.process)
            order(self.session, draw)
            # The backend also has work after its answer.
            time.sleep(0.0005)
            each.append((processor_us(self.session.process) - before) / STATEMENTS)
        time.sleep(0.05)
        collected = (processor_us(self.collector) - began) / STATEMENTS / orders
        return part(each, PART), collected


def part(values: Sequence[float], share: float) -> float:
    """Returns the value below which so large a share of the values is."""
    return sorted(values)[int(len(values) * share)]


@contextmanager
def running(server: DatabaseServer, pq: ctypes.CDLL, prepared: Path, top: Path, form: Form) -> Iterator[Running]:
    """Runs a server with a copy of the data, and with a collector if the form has one."""
    top.mkdir()
    top.chmod(0o711)
    data = top / "data"
    subprocess.run(["cp", "-a", "--reflink=auto", prepared, data], check=True)
    # Settings on the command line could not be changed later.
    settings = data / "postgresql.auto.conf"
    settings.write_text(configuration(form))
    with server.running(data, Recording.NOTHING) as port, ExitStack() as sessions:
        made = []
        for _ in range(2):
            session = libpq.Session(pq, port, "root", "tpcc")
            sessions.callback(session.close)
            made.append(session)
        process = int((data / "postmaster.pid").read_text().split()[0])
        yield Running(settings, made[0], made[1], collecting(process))


def in_order(rows: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Returns the rows in the order of the forms, those of the server with a collector first."""
    names = [form.name for form in FORMS]
    return sorted(rows, key=lambda row: (row["collector"] == "no", names.index(str(row["form"]))))


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table: the difference to the same server without statements.

    Of the backend's times, the 15th percentile of the rounds is taken on both sides, and of the
    collector's the tenth. The processor of a virtual machine has turns at half of its speed.
    """
    lines = ["| form | collector | backend (µs) | collector (µs) |", "| --- | --- | ---: | ---: |"]
    backends: dict[tuple[str, str], list[float]] = {}
    writers: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        turn = str(row["form"]), str(row["collector"])
        backends.setdefault(turn, []).append(float(str(row["backend_us"])))
        writers.setdefault(turn, []).append(float(str(row["collector_us"])))
    for name, collector in backends:
        if name == NO_STATEMENTS:
            continue
        own, bare = (name, collector), (NO_STATEMENTS, collector)
        backend = part(backends[own], PART) - part(backends[bare], PART)
        writer = f"{part(writers[own], 0.1) - part(writers[bare], 0.1):.1f}" if collector == "yes" else "none"
        lines.append(f"| {name} | {collector} | {backend:.1f} | {writer} |")
    return lines


def main_log_forms(args: argparse.Namespace) -> int:
    """Runs the command."""
    server = SERVERS["postgres"]
    pq = libpq.library()
    lacking = server.missing()
    if lacking is None and shutil.which(args.go_tpc) is None:
        lacking = f"{args.go_tpc} is not installed (go build github.com/pingcap/go-tpc/cmd/go-tpc)"
    if lacking is not None or pq is None:
        print(f"SKIPPED: {lacking or f'{libpq.LIBRARY} is not installed'}")
        return 0
    args.warehouses = 1
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-logforms-", dir=args.workdir) as made, ExitStack() as all_servers:
        top = Path(made)
        top.chmod(0o711)
        prepared = top / "data"
        prepare(args, server, prepared)
        bare = [form for form in FORMS if form.name == NO_STATEMENTS]
        servers = {
            form.collector: all_servers.enter_context(running(server, pq, prepared, top / str(form.collector), form))
            for form in bare
        }
        for number in range(args.rounds):
            for form in random.sample(FORMS, k=len(FORMS)):
                backend, writer = servers[form.collector].turn(form, args.orders, number)
                values = ["yes" if form.collector else "no", number, args.orders, f"{backend:.2f}", f"{writer:.2f}"]
                rows.append(dict(zip(FIELDS, [form.name, *values], strict=True)))
            if args.out:
                write_rows(args.out, FIELDS, rows)
            progress.show(f"log forms: round {number + 1} of {args.rounds}")
    progress.show("")
    print("\n".join(summary(in_order(rows))))
    return 0
