"""The runs of a corpus as templates: their rows, and what may be repeated of each.

In: a lake of recorded runs. Out: the rows of all runs, one table for each table of the lake, with
keys and moments relative to their run. A fleet repeats what a root process started: `repeats` is
true for such rows. A file has one of the classes below, which decides about its identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.questions import Limits, Question
from backstory_lake.tables import BY_NAME, TABLES

#: A version that the run made, a file of the system, an input of the project, and a node without an
#: identity.
MADE, SYSTEM, INPUT, PLAIN = range(4)

#: The tables with rows of templates, and the columns of each that are keys or moments.
KEYS = {
    "processes": ("process", "parent"),
    "files": ("file", "previous"),
    "edges": ("process", "file"),
    "derivations": ("file", "origin", "process"),
    "informs": ("process", "origin"),
    "steps": (),
}
MOMENTS = ("started_ns", "ended_ns", "time_ns", "modified_ns", "changed_ns", "born_ns")
LOCAL = (1 << 32) - 1

Array = np.ndarray[Any, Any]


@dataclass
class Rows:
    """The rows of one table, those of a template together."""

    table: pa.Table
    #: Where the rows of each template begin; one more at the end.
    first: Array
    repeats: Array

    def numbers(self, name: str) -> Array:
        """A column as numbers; NULL is 0."""
        column = self.table[name].combine_chunks()
        return np.asarray(pc.fill_null(column, 0).cast(pa.int64()).to_numpy(zero_copy_only=False))

    def known(self, name: str) -> Array:
        """True where a column is not NULL."""
        return np.asarray(self.table[name].is_valid().to_numpy())


@dataclass
class Templates:
    """All templates of a corpus."""

    runs: list[dict[str, Any]]
    rows: dict[str, Rows]
    #: For each row of `files`: its class, and where its path begins below the corpus's directory.
    classes: Array
    inside: Array
    #: For each row of `processes` and `files`: its place among those of its run that are repeated.
    places: dict[str, Array]
    directory: str
    #: The share of a run's inputs that an earlier run made.
    upstream: float

    @property
    def edges(self) -> float:
        """The mean number of edges of a run."""
        return len(self.rows["edges"].table) / len(self.runs)

    def count(self, name: str) -> Array:
        """The rows of a table for each template."""
        counts: Array = np.diff(self.rows[name].first)
        return counts

    def repeated(self, name: str) -> Array:
        """The rows of a table for each template that are repeated."""
        rows = self.rows[name]
        sums = np.concatenate([[0], np.cumsum(rows.repeats)])
        return np.asarray(np.diff(sums[rows.first]))


def read(lake: Lake) -> Templates:
    """Reads the runs of a lake."""
    question = Question(lake, Limits(0, 4000))
    found = _runs(question)
    if not found:
        raise LakeError(f"{lake.name} has no runs to make a fleet of; record and ship some")
    order = {run["run"]: at for at, run in enumerate(found)}
    starts = np.array([run["started_ns"] for run in found])
    rows = {
        table.name: _rows(question, table.name, order, starts)
        for table in TABLES
        if table.name in KEYS
    }
    directory = _directory([run["cwd"] for run in found])
    roots = _roots(rows["processes"])
    for name in KEYS:
        _mark_repeats(name, rows, roots)
    classes, inside = _classes(rows, directory)
    # A file that only a root process made is there once.
    rows["files"].repeats = (classes == MADE) & ~_is_made_by(rows, ~rows["edges"].repeats)
    places = {name: _places(rows[name]) for name in ("processes", "files")}
    return Templates(found, rows, classes, inside, places, directory, upstream(question, directory))


def _runs(question: Question) -> list[dict[str, Any]]:
    names = [
        name for _, name, _ in BY_NAME["runs"].columns if name not in ("day", "bucket", "forgotten")
    ]
    is_there = "NOT coalesce(forgotten, false)"
    sql = f"SELECT {', '.join(names)} FROM runs_table WHERE {is_there} ORDER BY run"
    with question.rows(sql) as answer:
        return [dict(zip(names, row)) for row in answer.fetchall()]


def _rows(question: Question, name: str, order: dict[str, int], starts: Array) -> Rows:
    # All columns decide about the order, so that a corpus gives the same templates again.
    sql = (
        f"SELECT t.* FROM {name}_table t JOIN runs r ON r.run = t.run ORDER BY t.run, COLUMNS(t.*)"
    )
    table = question.connection.sql(sql).to_arrow_table().combine_chunks()
    run = np.array([order[one] for one in table["run"].to_pylist()], dtype=np.int64)
    for key in KEYS[name]:
        table = _changed(table, key, pc.bit_wise_and(table[key], pa.scalar(LOCAL, pa.int64())))
    for moment in MOMENTS:
        if moment in table.column_names:
            table = _changed(table, moment, pc.subtract(table[moment], pa.array(starts[run])))
    for moment in ("started_us", "ended_us"):
        if moment in table.column_names:
            table = _changed(
                table, moment, pc.subtract(table[moment], pa.array(starts[run] // 1000))
            )
    first = np.searchsorted(run, np.arange(len(order) + 1))
    return Rows(table, first, np.zeros(len(run), bool))


def _changed(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def _directory(paths: list[str]) -> str:
    """The directory below which the corpus was recorded."""
    parts = [path.split("/") for path in paths if path]
    common = []
    for level in zip(*parts):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return "/".join(common) or "/"


def _roots(processes: Rows) -> set[tuple[int, int]]:
    """The root processes, each with its template."""
    run = _template_of(processes)
    keys, known = processes.numbers("process"), processes.known("parent")
    return set(zip(run[~known].tolist(), keys[~known].tolist()))


def _template_of(rows: Rows) -> Array:
    return np.repeat(np.arange(len(rows.first) - 1), np.diff(rows.first))


def _mark_repeats(name: str, rows: dict[str, Rows], roots: set[tuple[int, int]]) -> None:
    of = rows[name]
    ends = {"processes": ["process"], "edges": ["process"], "derivations": ["process"]}
    ends["informs"] = ["process", "origin"]
    if name == "steps":
        of.repeats = np.ones(len(of.table), bool)
    for end in ends.get(name, []):
        pairs = zip(_template_of(of).tolist(), of.numbers(end).tolist())
        of.repeats |= np.array([pair not in roots for pair in pairs], bool)


def _is_made_by(rows: dict[str, Rows], chosen: Array) -> Array:
    """True for versions that the chosen edges write."""
    edges, files = rows["edges"], rows["files"]
    writes = pc.is_in(edges.table["how"], pa.array(["write", "rename", "make"])).to_numpy() & chosen
    made = _wide(edges, "file")[writes]
    return np.isin(_wide(files, "file"), made)


def _wide(rows: Rows, name: str) -> Array:
    """Keys that differ between templates."""
    return np.asarray(_template_of(rows) << 32 | rows.numbers(name))


def _classes(rows: dict[str, Rows], directory: str) -> tuple[Array, Array]:
    files = rows["files"]
    derived = np.isin(_wide(files, "file"), _wide(rows["derivations"], "file"))
    made = _is_made_by(rows, np.ones(len(rows["edges"].table), bool))
    made |= derived & (files.numbers("version") > 0)
    below = pc.starts_with(files.table["path"], directory + "/").fill_null(False)
    inside = np.where(below.to_numpy(), len(directory), 0)
    classes = np.where(inside > 0, INPUT, SYSTEM)
    classes[~files.known("modified_ns")] = PLAIN
    classes[made] = MADE
    return classes, inside


def _places(rows: Rows) -> Array:
    sums = np.cumsum(rows.repeats) - rows.repeats
    return np.asarray(sums - sums[np.minimum(rows.first[:-1], len(sums) - 1)][_template_of(rows)])


def directory_of(question: Question) -> str:
    """The directory below which a lake's runs were recorded."""
    return _directory([run["cwd"] for run in _runs(question)])


def upstream(question: Question, directory: str) -> float:
    """The share of the files that runs read below the directory that an earlier run made."""
    text = directory.replace("'", "''")
    sql = f"""SELECT avg(CASE WHEN EXISTS (SELECT 1 FROM lake_jumps j WHERE j.target = f.file)
        THEN 1.0 ELSE 0.0 END)
      FROM lake_versions v JOIN files f ON f.file = v.file
      WHERE NOT v.made AND f.kind = 'file' AND starts_with(f.path, '{text}/')
        AND EXISTS (SELECT 1 FROM edges e WHERE e.file = v.file AND e.how = 'read')"""
    with question.rows(sql) as answer:
        return float(answer.fetchall()[0][0] or 0)
