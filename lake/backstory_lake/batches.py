"""The rows of some runs, as the lake has them.

In: a store, and runs with their numbers in the lake. Out: a table of Arrow for each table of the
lake. A key of the store becomes the run's number in the lake << 32 | the key's place in the run.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .privacy import Privacy, shell_words
from .program import Program
from .tables import (
    CONNECTIONS,
    COUNTED,
    DERIVATIONS,
    EDGES,
    FILES,
    INFORMS,
    LATER_COLUMNS,
    PEERS,
    PROCESSES,
    RUNS,
    STEPS,
    LakeTable,
)

#: Buckets of machines: each is a partition of a day.
BUCKETS = 16
#: A number of a run has 31 bits, so that a key has 63.
NUMBERS = 1 << 31
LOCAL = (1 << 32) - 1
#: Columns that the lake adds by itself.
ADDED = {"day", "bucket", "shipment", "number", "path_bytes"}


@dataclass(frozen=True)
class ShippedRun:
    """A run of a store that goes to a lake."""

    row: dict[str, Any]
    number: int

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.row["run"])

    @property
    def day(self) -> date:
        """The day on which it began, by its machine's clock."""
        return date(1970, 1, 1) + timedelta(days=self.row["started_ns"] // (86_400 * 10**9))

    @property
    def bucket(self) -> int:
        """The bucket of its machine."""
        return zlib.crc32(self.row["host"].encode(errors="replace")) % BUCKETS


def run_rows(program: Program) -> list[dict[str, Any]]:
    """The runs of a store that have ended, in the order of their begin."""
    program.wait()
    names = [
        name
        for _, name, _ in RUNS.columns
        if name not in ADDED
        and name
        not in ("ended_us", "machine", "owner", "sensitivity", "format", "shipped_us", "forgotten")
        and name not in COUNTED
    ]
    sql = f"SELECT {', '.join(_quoted(names))}, ended FROM runs WHERE ended IS NOT NULL"
    return sorted(program.objects(sql), key=lambda row: (row["started_ns"], row["run"]))


class Batch:
    """Reads the rows of some runs."""

    def __init__(
        self, program: Program, runs: list[ShippedRun], shipment: int, privacy: Privacy
    ) -> None:
        self._program = program
        self._runs = runs
        self._shipment = shipment
        self._privacy = privacy
        listed = ", ".join(_text(run.id) for run in runs)
        self._condition = f"run IN ({listed})"
        self._places = pa.array([run.id for run in runs])
        # Words that mention private paths, for each run.
        self._words: dict[str, set[str]] = {}
        self._omitted: pa.Array = pa.array([], pa.int64())
        self._hashed: pa.Array = pa.array([], pa.int64())
        # The rows of each run in these tables.
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}

    def tables(self) -> list[tuple[LakeTable, pa.Table]]:
        """The rows of all tables but `runs`. Private names are hidden."""
        files = self._hide_files(self._read_files())
        edges = self._kept(self._read(EDGES), "file")
        derivations = self._kept(self._kept(self._read(DERIVATIONS), "file"), "origin")
        return [
            (PROCESSES, self._texts(PROCESSES, ["program", "command", "cwd"], ["parent"])),
            (FILES, files),
            (EDGES, edges),
            (STEPS, self._texts(STEPS, ["step", "command", "cwd"], [])),
            (DERIVATIONS, derivations),
            (INFORMS, self._read(INFORMS)),
            (CONNECTIONS, self._read_connections()),
            (PEERS, self._read_peers()),
        ]

    def _read_connections(self) -> pa.Table:
        """The ends of connections. Those whose entity is private stay at home."""
        if CONNECTIONS.name not in self._program.schema():
            # An older program does not know the ends of connections.
            return CONNECTIONS.arrow.empty_table()
        rows = self._kept(self._read(CONNECTIONS), "file")
        rows = rows.filter(pc.invert(pc.is_in(rows["file"], self._hashed)))
        self._counts[CONNECTIONS.name].update(rows["run"].to_pylist())
        return rows

    def _read_peers(self) -> pa.Table:
        """The addresses that processes talked to. Private ones stay at home."""
        if PEERS.name not in self._program.schema():
            # An older program has no such view.
            return PEERS.arrow.empty_table()
        rows = self._read(PEERS)
        addresses = rows["address"].to_pylist()
        private = [self._privacy.omits(one) or self._privacy.hashes(one) for one in addresses]
        rows = rows.filter(pa.array([not one for one in private], pa.bool_()))
        self._counts[PEERS.name].update(rows["run"].to_pylist())
        names = [
            self._privacy.hidden_list(names, self._words.get(run, set()))
            for names, run in zip(rows["names"].to_pylist(), rows["run"].to_pylist())
        ]
        return _with(rows, "names", pa.array(names, pa.string()))

    def runs(self, facts: dict[str, Any]) -> pa.Table:
        """The rows of `runs`. `facts` are the same for all; an owner of `None` is the user."""
        rows = []
        for run in self._runs:
            row = dict(run.row)
            words = self._words.get(run.id, set())
            for name in ("name", "note", "command", "cwd"):
                row[name] = self._privacy.hidden(_readable(row[name]), words)
            row |= facts
            row["owner"] = row["owner"] or user_name(row["uid"])
            row["ended_us"] = microseconds(row["ended"])
            for truth in ("complete", "undone"):
                row[truth] = bool(row[truth])
            row |= {name: counts[run.id] for name, counts in self._counts.items()}
            rows.append(row | self._place(run) | {"forgotten": False})
        return pa.Table.from_pylist(rows, RUNS.arrow)

    def _place(self, run: ShippedRun) -> dict[str, Any]:
        return {
            "day": run.day,
            "bucket": run.bucket,
            "shipment": self._shipment,
            "number": run.number,
        }

    def _read(self, of: LakeTable, extra: str = "") -> pa.Table:
        """The rows of a view whose texts cannot be empty."""
        fields = [field for field in of.arrow if field.name not in ADDED]
        names = ", ".join(_quoted(field.name for field in fields))
        sql = f"SELECT {names}{extra} FROM {of.name} WHERE {self._condition}"
        rows = self._program.table(sql, pa.schema([(f.name, f.type) for f in fields]))
        return self._placed(of, rows)

    def _placed(self, of: LakeTable, rows: pa.Table) -> pa.Table:
        """Adds the columns of the run, and turns keys into those of the lake."""
        at = pc.index_in(rows["run"].combine_chunks(), self._places)
        places = [self._place(run) for run in self._runs]
        for name in ("day", "bucket", "shipment", "number"):
            values = pa.array([place[name] for place in places], of.arrow.field(name).type)
            rows = rows.append_column(name, values.take(at))
        high = pc.shift_left(rows["number"], pa.scalar(32, pa.int64()))
        for name in ("process", "file", "parent", "previous", "origin", "reply"):
            if name in rows.column_names:
                local = pc.bit_wise_and(rows[name], pa.scalar(LOCAL, pa.int64()))
                column = rows.column_names.index(name)
                rows = rows.set_column(column, name, pc.bit_wise_or(high, local))
        return rows

    def _read_files(self) -> pa.Table:
        """The versions. A path that is not UTF-8 also has its bytes."""
        unknown = LATER_COLUMNS - set(self._program.schema()[FILES.name])
        left_out = ADDED | {"path"} | unknown
        fields = [field for field in FILES.arrow if field.name not in left_out]
        names = ", ".join(_quoted(field.name for field in fields))
        path = (
            "CASE typeof(path) WHEN 'blob' THEN NULL ELSE path END AS path, "
            "CASE typeof(path) WHEN 'blob' THEN hex(path) END AS path_bytes"
        )
        schema = pa.schema([(f.name, f.type) for f in fields])
        schema = schema.append(pa.field("path", pa.string()))
        schema = schema.append(pa.field("path_bytes", pa.string()))
        sql = f"SELECT {names}, {path} FROM files WHERE {self._condition}"
        rows = self._placed(FILES, self._program.table(sql, schema))
        if "aliases" in unknown:
            rows = rows.append_column("aliases", pa.nulls(len(rows), pa.string()))
        else:
            # NULL says that the names are not known.
            rows = _with(rows, "aliases", pc.fill_null(rows["aliases"], ""))
        odd = [
            None if one is None else bytes.fromhex(one) for one in rows["path_bytes"].to_pylist()
        ]
        readable = pa.array(
            [None if one is None else one.decode(errors="replace") for one in odd], pa.string()
        )
        rows = rows.set_column(
            rows.column_names.index("path"), "path", pc.coalesce(rows["path"], readable)
        )
        column = rows.column_names.index("path_bytes")
        return rows.set_column(column, "path_bytes", pa.array(odd, pa.binary()))

    def _hide_files(self, files: pa.Table) -> pa.Table:
        if not self._privacy.is_needed:
            return files
        distinct = pc.unique(files["path"].combine_chunks()).to_pylist()
        omitted = {path for path in distinct if path and self._privacy.omits(path)}
        hashed = {path for path in distinct if path and self._privacy.hashes(path)} - omitted
        private = pa.array(sorted(omitted | hashed), pa.string())
        mentioned = files.filter(pc.is_in(files["path"], private))
        for run, paths in _by_run(mentioned["run"].to_pylist(), mentioned["path"].to_pylist()):
            self._words[run] = self._privacy.names(paths)
        for run, names in _by_run(*self._private_aliases(files)):
            self._words[run] = self._words.get(run, set()) | self._privacy.names(names)
        gone = pc.is_in(files["path"], pa.array(sorted(omitted), pa.string()))
        self._omitted = files.filter(gone)["file"].combine_chunks()
        files = files.filter(pc.invert(gone))
        previous = pc.if_else(
            pc.is_in(files["previous"], self._omitted),
            pa.scalar(None, pa.int64()),
            files["previous"],
        )
        files = _with(files, "previous", previous)
        hidden = {path: self._privacy.pseudonym(path) for path in hashed}
        is_hidden = pc.is_in(files["path"], pa.array(sorted(hashed), pa.string()))
        self._hashed = files.filter(is_hidden)["file"].combine_chunks()
        names = [hidden.get(path, path) for path in files["path"].to_pylist()]
        digests = [
            self._privacy.pseudonym(digest) if digest and hide else digest
            for digest, hide in zip(files["digest"].to_pylist(), is_hidden.to_pylist())
        ]
        nothing = pa.scalar(None, pa.binary())
        files = _with(files, "path_bytes", pc.if_else(is_hidden, nothing, files["path_bytes"]))
        files = _with(files, "digest", pa.array(digests, pa.string()))
        aliases = [
            self._privacy.hidden_names(text, hide) if text else text
            for text, hide in zip(files["aliases"].to_pylist(), is_hidden.to_pylist())
        ]
        files = _with(files, "aliases", pa.array(aliases, pa.string()))
        return _with(files, "path", pa.array(names, pa.string()))

    def _private_aliases(self, files: pa.Table) -> tuple[list[str], list[str]]:
        """The other names of files that are private, and the run of each."""
        runs, names = [], []
        for run, text in zip(files["run"].to_pylist(), files["aliases"].to_pylist()):
            for name in shell_words(text or ""):
                if self._privacy.omits(name) or self._privacy.hashes(name):
                    runs.append(run)
                    names.append(name)
        return runs, names

    def _kept(self, rows: pa.Table, column: str) -> pa.Table:
        """Without the rows of files that stay at home."""
        if not len(self._omitted):
            return rows
        return rows.filter(pc.invert(pc.is_in(rows[column], self._omitted)))

    def _texts(self, of: LakeTable, texts: list[str], keys: list[str]) -> pa.Table:
        """The rows of a view with texts that may be empty or mention private names."""
        names = [n for n in of.arrow.names if n not in ADDED | {"started_us", "ended_us"}]
        moments = "" if of is not STEPS else ", started, ended"
        listed = ", ".join(_quoted(names))
        sql = f"SELECT {listed}{moments} FROM {of.name} WHERE {self._condition}"
        rows = self._program.objects(sql)
        for row in rows:
            words = self._words.get(row["run"], set())
            for name in texts:
                row[name] = self._privacy.hidden(_readable(row[name]), words)
            for name in ("inputs", "outputs"):
                if name in row:
                    row[name] = self._privacy.hidden_list(row[name], words)
            for name in ("started", "ended"):
                if name in row:
                    row[f"{name}_us"] = microseconds(row[name])
        columns = [field for field in of.arrow if field.name not in ADDED]
        return self._placed(of, pa.Table.from_pylist(rows, pa.schema(columns)))


def _by_run(runs: list[str], names: list[str]) -> Iterable[tuple[str, set[str]]]:
    paths: dict[str, set[str]] = {}
    for run, name in zip(runs, names):
        paths.setdefault(run, set()).add(name)
    return paths.items()


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)


def _readable(text: str | None) -> str | None:
    """A text without the lone surrogates that stand for bytes that are not UTF-8."""
    return None if text is None else text.encode(errors="surrogateescape").decode(errors="replace")


def microseconds(moment: str | None) -> int | None:
    """A moment as `backstory query` writes it, in µs since 1970."""
    if moment is None:
        return None
    since = datetime.fromisoformat(moment).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)


def user_name(uid: int) -> str:
    """The name of a user of this machine, else the number."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def store_directory(program: Program) -> Path:
    """The directory of the store."""
    assert program.store is not None
    return Path(program.store)


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
