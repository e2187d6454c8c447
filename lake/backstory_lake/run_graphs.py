"""`graphs`: gives `backstory hunt --lake` the graphs of runs, one after the other.

In: a request, which says what rules need of a run. Out: lines of text, one for each node and edge.
Only runs that can match are read. Of the other chosen runs, only a few columns are read. A request
that compares runs (`unexplained.py`) also reads a few columns of all files, edges and derivations
of the lake.

| line | fields |
| --- | --- |
| `n` | selected runs, runs that follow, and those of them whose files have no known other names |
| `r` | id, host, machine, whether another machine has this host's name, edges |
| `p` | process, parent, pid, program, command, directory, begin, end, exit |
| `f` | file, path, kind, version, previous, other names, whether no recorded run explains it |
| `e` | process, file, how, certainty, begin, end |
| `d` | file, origin, process, moment |
| `i` | process, origin, how, moment |
| `.` | the end of a run |
| `end` | the end |

Texts of people are in hexadecimal digits. A missing value is empty. Keys count from 0 in each run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TextIO

from .batches import LOCAL
from .errors import LakeError, MisuseError
from .questions import Question
from .unexplained import UNEXPLAINED
from .views import quoted

#: Edges that are read at once. A run with more is read alone.
EDGES = 300_000
#: Lines that are fetched at once.
FETCHED = 50_000


@dataclass(frozen=True)
class Request:
    """The runs that are wanted."""

    #: Runs with more edges are named only.
    most: int
    #: Ids, beginnings of ids, or names. None: all.
    runs: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    #: The least and the greatest begin.
    since: int | None = None
    until: int | None = None
    #: Tests of single rows of these tables, and a condition over them for a run.
    files: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    condition: str = "true"
    #: Whether it matters which versions no recorded run explains.
    compares: bool = False

    @classmethod
    def read(cls, text: str) -> Request:
        """Reads the JSON of a request."""
        given = json.loads(text)
        known = {one.name for one in fields(cls)}
        if unknown := set(given) - known:
            raise MisuseError(f"a newer backstory asks for {', '.join(sorted(unknown))}")
        return cls(**given)


class RunGraphs:
    """The runs of a lake that a request means."""

    def __init__(self, question: Question, request: Request) -> None:
        self._question = question
        self._request = request

    def write(self, out: TextIO) -> None:
        """Writes the runs, the newest first.

        The bound of time is that of the choice, and again of each part that is read. The reader may
        take any time between two parts.
        """
        with self._question.bounded():
            self._select()
            self._describe()
            self._test()
            selected, sizes, older = self._counted()
        out.write(f"n,{selected},{len(sizes)},{older}\n")
        for some in _parts(sizes, self._request.most):
            with self._question.bounded():
                lines = self._lines([run[0] for run in some if run[-1] <= self._request.most])
            for number, run, host, machine, shared, edges in some:
                out.write(
                    f"r,{_hex(run)},{_hex(host)},{_hex(machine)},{int(bool(shared))},{edges}\n"
                )
                for line in lines.pop(number, []):
                    out.write(line)
                    out.write("\n")
                out.write(".\n")
        out.write("end\n")

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._question.execute(sql).fetchall()

    def _select(self) -> None:
        """Keeps all runs, and which of them the request names."""
        wanted = ["NOT coalesce(forgotten, false)"]
        if self._request.runs:
            found = (self._named(word) for word in self._request.runs)
            wanted.append(f"run IN {_listed(id for some in found for id in some)}")
        if self._request.hosts:
            wanted.append(f"host IN {_listed(self._request.hosts)}")
        if self._request.since is not None:
            wanted.append(f"started_ns >= {int(self._request.since)}")
        if self._request.until is not None:
            wanted.append(f"started_ns <= {int(self._request.until)}")
        self._run(
            "CREATE TEMP TABLE hunt_runs AS SELECT number, shipment, run, host, machine, day, "
            "bucket, started_ns, coalesce(ended_us * 1000 + 999, started_ns) AS ended_ns, "
            "coalesce(forgotten, false) AS forgotten, "
            "min(machine) OVER same_name <> max(machine) OVER same_name AS shared, "
            f"({' AND '.join(wanted)}) AS wanted FROM runs_table "
            "WINDOW same_name AS (PARTITION BY host)"
        )
        place = self._place("wanted")
        for table in ROWS:
            self._run(
                f"CREATE TEMP VIEW hunt_{table}_table AS SELECT t.* FROM {table}_table t "
                "JOIN hunt_runs r ON r.number = t.number AND r.shipment = t.shipment "
                f"WHERE r.wanted AND {place}"
            )

    def _named(self, word: str) -> list[str]:
        known = "FROM runs_table WHERE NOT coalesce(forgotten, false) AND"
        for test in ("run = ", "name = ", "starts_with(run, "):
            close = ")" if test.endswith("(run, ") else ""
            found = self._run(f"SELECT run {known} {test}{quoted(word)}{close}")
            if found:
                return [run for (run,) in found]
        raise LakeError(f"no run {word} in the lake")

    def _place(self, condition: str) -> str:
        """A condition that leaves out the partitions without a run that is meant."""
        first, last, buckets = self._run(
            "SELECT min(day), max(day), list(DISTINCT bucket) FROM hunt_runs "
            f"WHERE {condition} AND day IS NOT NULL"
        )[0]
        if first is None:
            return "false"
        listed = ", ".join(map(str, sorted(buckets)))
        return f"t.day BETWEEN DATE '{first}' AND DATE '{last}' AND t.bucket IN ({listed})"

    def _describe(self) -> None:
        """Makes the views with the rows of wanted runs, as tests and lines use them."""
        if self._request.compares:
            self._run(f"CREATE TEMP TABLE hunt_unexplained AS {UNEXPLAINED}")
            unexplained = "t.file IN (SELECT file FROM hunt_unexplained)"
        else:
            unexplained = "false"
        for table in ROWS:
            more = f", {unexplained} AS unexplained" if table == "files" else ""
            self._run(
                f"CREATE TEMP VIEW hunt_{table} AS SELECT t.*{more} FROM hunt_{table}_table t"
            )

    def _test(self) -> None:
        """Keeps the runs that meet the condition."""
        joins = ""
        for table in ("files", "processes", "edges"):
            tests = getattr(self._request, table)
            if not tests:
                continue
            letter = table[0]
            held = ", ".join(f"bool_or({test}) AS {letter}{at}" for at, test in enumerate(tests))
            some = " OR ".join(f"({test})" for test in tests)
            joins += (
                f" LEFT JOIN (SELECT number, {held} FROM hunt_{table} WHERE {some} "
                f"GROUP BY number) {letter} ON {letter}.number = r.number"
            )
        self._run(
            "CREATE TEMP TABLE hunt_candidates AS SELECT r.* FROM hunt_runs r"
            f"{joins} WHERE r.wanted AND ({self._request.condition})"
        )

    def _counted(self) -> tuple[int, list[tuple[Any, ...]], int]:
        """The number of runs that are meant, those that can match, and how many of these are old.

        An old one has no further names of files.
        """
        selected = self._run("SELECT count(*) FROM hunt_runs WHERE wanted")[0][0]
        sizes = self._run(
            "SELECT c.number, c.run, c.host, c.machine, c.shared, coalesce(e.edges, 0) "
            "FROM hunt_candidates c LEFT JOIN (SELECT number, count(*) AS edges "
            "FROM hunt_edges_table WHERE number IN (SELECT number FROM hunt_candidates) "
            "GROUP BY number) e ON e.number = c.number ORDER BY c.started_ns DESC, c.run"
        )
        older = self._run(
            "SELECT count(DISTINCT number) FROM hunt_files WHERE aliases IS NULL "
            "AND number IN (SELECT number FROM hunt_candidates)"
        )[0][0]
        return selected, sizes, older

    def _lines(self, numbers: list[int]) -> dict[int, list[str]]:
        """The lines of each of these runs."""
        lines: dict[int, list[str]] = {number: [] for number in numbers}
        if not numbers:
            return lines
        listed = ", ".join(map(str, numbers))
        place = self._place(f"number IN ({listed})")
        for table, cells in ROWS.items():
            found = self._question.execute(
                f"SELECT t.number, concat_ws(',', {', '.join(cells)}) FROM hunt_{table} t "
                f"WHERE t.number IN ({listed}) AND {place}"
            )
            while some := found.fetchmany(FETCHED):
                for number, line in some:
                    lines[number].append(line)
        return lines


def _listed(texts: Iterable[str]) -> str:
    return f"({', '.join(map(quoted, texts))})"


def _parts(sizes: list[tuple[Any, ...]], most: int) -> Iterator[list[tuple[Any, ...]]]:
    part: list[tuple[Any, ...]] = []
    edges = 0
    for run in sizes:
        own = run[-1] if run[-1] <= most else 0
        if part and edges + own > EDGES:
            yield part
            part, edges = [], 0
        part.append(run)
        edges += own
    if part:
        yield part


def _hex(text: str | None) -> str:
    return (text or "").encode(errors="replace").hex()


def _key(name: str) -> str:
    return f"coalesce(CAST(t.{name} & {LOCAL} AS VARCHAR), '')"


def _number(name: str) -> str:
    return f"coalesce(CAST(t.{name} AS VARCHAR), '')"


def _text(name: str) -> str:
    return f"coalesce(hex(t.{name}), '')"


#: The cells of each kind of line. Other names are empty also if they are not known.
ROWS: dict[str, tuple[str, ...]] = {
    "processes": (
        "'p'",
        *map(_key, ("process", "parent")),
        _number("pid"),
        # A program without a name is not known.
        *map(_text, ("program", "command", "cwd")),
        *map(_number, ("started_ns", "ended_ns", "exit")),
    ),
    "files": (
        "'f'",
        _key("file"),
        "coalesce(hex(t.path_bytes), hex(t.path), '')",
        _number("kind"),
        _number("version"),
        _key("previous"),
        _text("aliases"),
        "CASE WHEN t.unexplained THEN '1' ELSE '0' END",
    ),
    "edges": (
        "'e'",
        *map(_key, ("process", "file")),
        *map(_number, ("how", "certainty", "started_ns", "ended_ns")),
    ),
    "derivations": ("'d'", *map(_key, ("file", "origin", "process")), _number("time_ns")),
    "informs": ("'i'", *map(_key, ("process", "origin")), *map(_number, ("how", "time_ns"))),
}
