"""Measures lakes: how large they are, how fast they are written, and what questions cost.

Out: a row of CSV for each measurement, which `page` reads. The same questions go to DuckDB and to
Spark, each in a process that has just begun.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from backstory_lake.lake import Lake
from backstory_lake.questions import Limits, Question
from backstory_lake.reading import data_files
from backstory_lake.tables import EDGES, RUNS, TABLES

#: MB of memory of a question to DuckDB, and of a worker of Spark.
MEMORY, WORKER_MEMORY = 6000, 1500
#: Numbers of files whose ancestry is asked for.
FILES = (1, 100, 10_000)
#: The most edges about which Spark is asked, if no other number is given.
MOST = 1e6
T = TypeVar("T")
KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}


@dataclass
class Measurement:
    """One measurement. Numbers that do not apply are 0."""

    engine: str
    question: str
    edges: int
    runs: int = 0
    workers: int = 1
    files: int = 0
    #: Wall time, and the time of all cores: the second hardly depends on other programs.
    seconds: float = 0.0
    cpu: float = 0.0
    rounds: int = 0
    links: int = 0
    #: Bytes: of the lake, of its table `edges`, shuffled by Spark, or kept by Spark.
    bytes: int = 0
    shuffled: int = 0
    #: The most bytes that a task of the largest shuffle reads, over the mean.
    skew: float = 0.0
    #: The distance of a distribution from the corpus's, and its bound.
    distance: float = 0.0
    bound: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A question: a lineage of some files, or SQL over the views."""

    name: str
    files: tuple[int, ...] = ()
    direction: str = "back"
    sql: str = ""


def questions(question: Question) -> list[Asked]:
    """The questions about a lake. A hash chooses the files, from the last days on."""
    results = "version > 0 AND last AND kind = 'file' AND digest IS NOT NULL"
    chosen = question.execute(
        f"SELECT file FROM files WHERE {results} "
        # The last days have the longest history.
        f"ORDER BY modified_ns // 86400000000000 DESC, hash(file) LIMIT {max(FILES)}"
    ).fetchall()
    files = [row[0] for row in chosen]
    layer, digest = question.execute(
        "SELECT f.file, f.digest FROM files f JOIN runs r ON r.run = f.run "
        "WHERE starts_with(r.command, 'tar -xf layer-') AND f.size >= 64 "
        "ORDER BY (SELECT count(*) FROM files c WHERE c.digest = f.digest) DESC, f.file LIMIT 1"
    ).fetchall()[0]
    counts = [count for count in FILES if count <= len(files)] or [len(files)]
    found = [
        Asked(f"of {count:,} {'file' if count == 1 else 'files'}", tuple(files[:count]))
        for count in counts
    ]
    found.append(Asked("uses of a layer's file", (layer,), "forth"))
    joined = "FROM files f JOIN edges e ON e.file = f.file JOIN runs r ON r.run = f.run"
    found += [
        Asked(
            "hosts that read a content",
            sql=f"SELECT count(DISTINCT r.host) {joined} "
            f"WHERE f.digest = '{digest}' AND e.how = 'read'",
        ),
        Asked(
            "hosts that executed a program",
            sql="SELECT r.host, count(*) FROM processes p JOIN runs r ON r.run = p.run "
            "WHERE p.program LIKE '%/sort' GROUP BY r.host",
        ),
        Asked(
            "bytes written by each owner",
            sql="SELECT r.owner, sum(f.size) FROM files f JOIN lake_made m ON m.file = f.file "
            "JOIN runs r ON r.run = f.run WHERE f.last GROUP BY r.owner",
        ),
    ]
    return found


def sizes(lake: Lake) -> list[Measurement]:
    """The bytes and files of a lake."""
    found = {table.name: data_files(lake.table(table)) for table in TABLES}
    edges = sum(file.record_count for file in found[EDGES.name])
    runs = sum(file.record_count for file in found[RUNS.name])
    total = [file.file_size_in_bytes for files in found.values() for file in files]
    own = [file.file_size_in_bytes for file in found[EDGES.name]]
    return [
        Measurement("lake", "all tables", edges, runs, files=len(total), bytes=sum(total)),
        Measurement("lake", "the table edges", edges, runs, files=len(own), bytes=sum(own)),
    ]


def hub(question: Question, size: Measurement) -> Measurement:
    """The content with the most copies: `links` are copies, and `files` runs that made it."""
    copies, makers = question.execute(
        "SELECT count(*) FILTER (WHERE NOT made) AS copies, count(*) FILTER (WHERE made) "
        "FROM lake_versions WHERE digest IS NOT NULL GROUP BY digest "
        "HAVING count(*) FILTER (WHERE made) > 0 ORDER BY copies DESC LIMIT 1"
    ).fetchall()[0]
    return Measurement("lake", "hub", size.edges, size.runs, files=makers, links=copies)


def duckdb(lake: Lake, asked: list[Asked]) -> Iterator[Measurement]:
    """Asks DuckDB."""
    size = sizes(lake)[0]
    question, seconds, cpu = timed(lambda: Question(lake, Limits(0, MEMORY)))
    workers = os.cpu_count() or 1
    yield Measurement("duckdb", "open", size.edges, size.runs, workers, size.files, seconds, cpu)
    for one in asked:
        sql = one.sql or f"FROM lineage({list(one.files)}::BIGINT[], '{one.direction}', NULL)"
        counted = f"SELECT count(*) FROM ({sql})"

        def answer(sql: str = counted) -> int:
            with question.rows(sql) as rows:
                return int(rows.fetchall()[0][0])

        links, seconds, cpu = timed(answer)
        files = len(one.files)
        yield Measurement(
            "duckdb", one.name, size.edges, size.runs, workers, files, seconds, cpu, links=links
        )


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """The result of some work, and the seconds that it took: on the wall, and of this process."""
    began, own = time.monotonic(), time.process_time()
    done = work()
    return done, round(time.monotonic() - began, 3), round(time.process_time() - own, 3)


def others(edges: int, seconds: float = 1.0) -> Measurement:
    """The cores that other programs use now, while this one waits."""
    began, busy = time.monotonic(), _busy()
    time.sleep(seconds)
    used = (_busy() - busy) / (time.monotonic() - began)
    return Measurement("machine", "others", edges, workers=os.cpu_count() or 1, cpu=round(used, 2))


def _busy() -> float:
    """The seconds that all cores were busy since the machine started."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, interrupts, soft, *_ = map(int, words)
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def append(path: Path, rows: list[Measurement]) -> None:
    """Adds measurements to a file."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(
            file, [one.name for one in fields(Measurement)], lineterminator="\n"
        )
        if is_new:
            writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read(path: Path) -> list[Measurement]:
    """The measurements of a file."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = {one.name: KINDS[str(one.type)] for one in fields(Measurement)}
    return [Measurement(**{name: kinds[name](row[name]) for name in row}) for row in rows]
