"""The store of recorded runs, and the questions that it answers."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _core, _program
from .errors import NotFoundError
from .tables import Answer, nanoseconds

if TYPE_CHECKING:
    from .differences import Diff
    from .lineage import Lineage

#: A path, as the functions of ``os`` accept it.
StrPath = Union[str, "os.PathLike[str]"]
#: A point in time: a ``datetime``, or seconds since 1970.
Moment = Union[datetime.datetime, float]


class Store:
    """A store of recorded runs.

    ``path`` is its directory. The default is that of the command line: ``$BACKSTORY_STORE``, else
    ``backstory`` in the XDG data directory.

    Each question first indexes the runs that have ended since, as the command line does. The
    returned objects do not change afterwards.
    """

    def __init__(self, path: StrPath | None = None) -> None:
        self._reader = _core.Reader(None if path is None else os.fspath(path))
        # A store that does not exist raises an error here, not at the first question.
        self._reader.recording()

    @property
    def path(self) -> str:
        """The directory of the store."""
        return os.fspath(self._reader.directory)

    def runs(
        self,
        limit: int | None = None,
        *,
        name: str | None = None,
        command: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        failed: bool = False,
    ) -> Runs:
        """Returns the runs that meet all conditions, newest first.

        ``name`` and ``command`` are patterns, as in ``backstory log``.
        """
        self._refresh()
        table = self._reader.runs(
            limit, name, command, nanoseconds(since), nanoseconds(until), failed
        )
        return Runs(self, table)

    def run(self, run: str | None = None) -> Run:
        """Returns a run by its id, its name, or the beginning of its id; by default the latest."""
        self._refresh()
        return Run(self, self._reader.resolve(run))

    def of(
        self,
        path: StrPath,
        *,
        run: str | None = None,
        at: Moment | None = None,
        depth: int | None = None,
        possible: bool = True,
        lookups: bool = False,
        exclude: Sequence[str] = (),
    ) -> Lineage:
        """Returns the lineage of a file: the processes and versions from which it came.

        The subject is the newest version of the file. ``run`` selects the version at the end of
        that run, as does ``PATH@RUN`` as the path. ``at`` selects the version at that time.

        ``depth``: cross at most this many processes. ``possible``: include flows that may have
        happened but were not observed. ``lookups``: follow look-ups, too. ``exclude``: leave out
        the paths that match these patterns.
        """
        return self._lineage(True, path, run, at, depth, possible, lookups, exclude)

    def uses(
        self,
        path: StrPath,
        *,
        run: str | None = None,
        at: Moment | None = None,
        depth: int | None = None,
        possible: bool = True,
        lookups: bool = False,
        exclude: Sequence[str] = (),
    ) -> Lineage:
        """Returns the files that came from a file, in all runs. Arguments: see ``of``."""
        return self._lineage(False, path, run, at, depth, possible, lookups, exclude)

    def _lineage(
        self,
        back: bool,
        path: StrPath,
        run: str | None,
        at: Moment | None,
        depth: int | None,
        possible: bool,
        lookups: bool,
        exclude: Sequence[str],
    ) -> Lineage:
        from .lineage import Lineage

        self._refresh()
        answer = self._reader.lineage(
            back, path, run, nanoseconds(at), depth, possible, lookups, list(exclude)
        )
        return Lineage(answer, os.fspath(path), back)

    def diff(self, a: StrPath | Run, b: StrPath | Run) -> Diff:
        """Compares two runs, or the histories of two versions of a file (``PATH@RUN``)."""
        from .differences import Diff

        self._refresh(contents=True)
        sides = [side.id if isinstance(side, Run) else os.fspath(side) for side in (a, b)]
        return Diff(self._reader.diff(sides[0], sides[1]), sides[0], sides[1])

    def contents(
        self, path: StrPath, version: str | Run | None = None, *, at: Moment | None = None
    ) -> bytes:
        """Returns the stored content of a file.

        The default is the newest version. With ``version``, it is the version that this run used or
        made; with ``at``, the version at that time.
        """
        self._refresh()
        run = version.id if isinstance(version, Run) else version
        try:
            return self._reader.contents(path, run, nanoseconds(at))
        except NotFoundError:
            # Contents are stored in the background. A call for one of them waits for the storing.
            self._refresh(contents=True)
            return self._reader.contents(path, run, nanoseconds(at))

    def status(self, *paths: StrPath) -> Answer:
        """Reports whether files are as their steps would make them now, and if not, why."""
        self._refresh(contents=True)
        table = self._reader.status(list(paths))
        return _Statuses(lambda: table)

    def recording(self) -> list[str]:
        """Returns the ids of the runs in progress. Other answers omit these runs."""
        return self._reader.recording()

    def _refresh(self, contents: bool = False) -> None:
        """Runs the program, which indexes the runs that have ended since the last question."""
        if contents:
            _program.ask(["index", "--wait", "--store", self.path])
        elif self._reader.is_behind():
            _program.ask(["log", "-n", "1", "--json", "--store", self.path])

    def __repr__(self) -> str:
        return f"Store({self.path!r})"


class _Statuses(Answer):
    _title = "files"


class _Files(Answer):
    _title = "files"


class _Processes(Answer):
    _title = "processes"


class _Edges(Answer):
    _title = "edges"


class Runs(Answer):
    """Runs, newest first. Iteration yields ``Run`` objects."""

    _title = "runs"

    def __init__(self, store: Store, table: _core.Table) -> None:
        super().__init__(lambda: table)
        self._store = store

    def __iter__(self) -> Iterator[Run]:
        for row in self.to_dicts():
            yield Run(self._store, row["run"], row)


class Run:
    """A recorded run. Its facts are attributes: ``command``, ``exit``, ``started``, ``complete`` …

    ``to_dict()`` returns all facts, under the names of ``backstory show --json``.
    """

    def __init__(self, store: Store, run: str, facts: dict[str, Any] | None = None) -> None:
        self._store = store
        self._facts = facts
        self.id = run

    @property
    def _reader(self) -> _core.Reader:
        """The store's reader, after the store has indexed the run."""
        self._store._refresh()
        return self._store._reader

    def to_dict(self) -> dict[str, Any]:
        """Returns the facts about the run."""
        if self._facts is None:
            table = self._reader.summary(self.id)
            self._facts = Answer(lambda: table).to_dicts()[0]
        return dict(self._facts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        facts = self.to_dict()
        if name not in facts:
            raise AttributeError(f"a run has no {name}: it has {', '.join(facts)}")
        return facts[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.to_dict()]

    def files(self) -> Answer:
        """Returns the files that the run used, and the kinds of use."""
        table = self._reader.files(self.id)
        return _Files(lambda: table)

    def processes(self) -> Answer:
        """Returns the programs that the run executed, and the activities that they marked."""
        table = self._reader.processes(self.id)
        return _Processes(lambda: table)

    def edges(self) -> Answer:
        """Returns all edges between the processes of the run and versions of files."""
        table = self._reader.edges(self.id)
        return _Edges(lambda: table)

    def to_pandas(self) -> Any:
        """Returns a frame with one row: the facts about the run."""
        return self._as_table().to_pandas()

    def to_polars(self) -> Any:
        """Returns a frame with one row: the facts about the run."""
        return self._as_table().to_polars()

    def to_arrow(self) -> Any:
        """Returns a table with one row: the facts about the run."""
        return self._as_table().to_arrow()

    def _as_table(self) -> Answer:
        return Runs(self._store, self._reader.summary(self.id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and (other.id, other._store.path) == (
            self.id,
            self._store.path,
        )

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def _repr_html_(self) -> str:
        from . import _html

        facts = self.to_dict()
        rows = [
            {"fact": name, "value": value}
            for name, value in facts.items()
            if value not in (None, [], "")
        ]
        return _html.table(["fact", "value"], rows, len(rows), f"facts about run {self.id}")
