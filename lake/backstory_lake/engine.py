"""What questions of several rounds need of an engine: SQL, and tables that last for the question.

`rounds`, `components` and `closure` write portable SQL, and execute it through an `Engine`. `Duck`
is DuckDB over the lake's files. The package `backstory_spark` has the engine for many machines.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from . import flows
from .lake import Lake
from .printing import Answer
from .questions import Limits, Question
from .views import quoted


@dataclass(frozen=True)
class Join:
    """A join of some rows `r` with the steps `s` that begin there: a hint, and the text of FROM."""

    hint: str
    text: str


class Engine(Protocol):
    """Executes SQL over the views of a lake."""

    #: The lake, as it was when the engine was made.
    lake: Lake

    def view(self, name: str, sql: str) -> None:
        """Gives a query a name."""

    def keep(self, name: str, sql: str) -> int:
        """Keeps rows under a name. Returns their number. The query may read its former rows."""

    def renew(self, name: str, sql: str, turn: int) -> None:
        """Keeps rows under a name, perhaps not before they are read."""

    def index(self, name: str, sql: str, key: str) -> None:
        """Keeps many rows that later queries find by a key.

        The query reads no kept rows: Spark would not recognise it, and execute it again.
        """

    def join(self, few: str, count: int, many: str) -> Join:
        """Joins some rows with `many` steps, on `few.node = many.here`."""

    def steps(self, direction: str) -> tuple[str, str]:
        """The names of the steps inside runs, and of those between runs."""

    def quoted(self, text: str) -> str:
        """A text in SQL."""

    def ask(self, sql: str) -> Answer:
        """The rows of an answer."""

    def save(self, sql: str, directory: Path) -> None:
        """Writes rows as Parquet files into a new directory."""

    def load(self, name: str, directory: Path) -> None:
        """Gives the rows of Parquet files a name."""

    def bounded(self) -> AbstractContextManager[None]:
        """Bounds what the context executes, and explains its errors."""


class Duck:
    """DuckDB on this machine."""

    def __init__(self, lake: Lake, limits: Limits) -> None:
        self.lake = lake
        self.question = Question(lake, limits)
        self._have_steps: set[str] = set()

    def close(self) -> None:
        """Ends the connection."""
        self.question.close()

    def bounded(self) -> AbstractContextManager[None]:
        return self.question.bounded()

    def view(self, name: str, sql: str) -> None:
        self._run(f"CREATE OR REPLACE VIEW {name} AS {sql}")

    def keep(self, name: str, sql: str) -> int:
        self._run(f"CREATE OR REPLACE TABLE {name} AS {sql}")
        return int(self._run(f"SELECT count(*) FROM {name}").fetchall()[0][0])

    def renew(self, name: str, sql: str, turn: int) -> None:
        self._run(f"CREATE OR REPLACE TABLE {name} AS {sql}")

    def index(self, name: str, sql: str, key: str) -> None:
        self.keep(name, sql)

    def join(self, few: str, count: int, many: str) -> Join:
        return Join("", f"{few} r JOIN {many} s ON s.here = r.node")

    def steps(self, direction: str) -> tuple[str, str]:
        near, far = f"lake_steps_{direction}", f"lake_jumps_{direction}"
        if direction not in self._have_steps:
            self.question.meet()
            self.view(near, flows.STEPS[direction])
            self.view(far, flows.JUMPS[direction])
            self._have_steps.add(direction)
        return near, far

    def quoted(self, text: str) -> str:
        return quoted(text)

    def ask(self, sql: str) -> Answer:
        return Answer.of(self._run(sql))

    def save(self, sql: str, directory: Path) -> None:
        directory.mkdir()
        self.question.prepare(sql)
        reader = self.question.connection.sql(sql).to_arrow_reader()
        with pq.ParquetWriter(directory / "part-0.parquet", reader.schema) as out:
            for batch in reader:
                out.write_batch(batch)

    def load(self, name: str, directory: Path) -> None:
        # The connection itself reads no files but the lake's.
        rows: pa.Table = ds.dataset(directory, format="parquet").to_table()
        self.question.connection.register(f"{name}_rows", rows)
        self.keep(name, f"SELECT * FROM {name}_rows")
        self.question.connection.unregister(f"{name}_rows")

    def _run(self, sql: str):  # type: ignore[no-untyped-def]
        return self.question.execute(sql)
