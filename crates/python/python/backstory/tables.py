"""Answers as tables, for pandas, polars, Arrow, and notebooks."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _html

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._core import Table

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

#: Rows that a notebook and a terminal show.
SHOWN = 20


class Answer:
    """A table.

    - ``to_pandas()``, ``to_polars()`` and ``to_arrow()`` make a frame of it. Any library that knows
      the Arrow PyCapsule interface takes the object itself.
    - ``to_dicts()`` and iteration give rows as dictionaries.
    - A notebook shows it as a table.

    A text that is not UTF-8 has lone surrogates here and in pandas, as ``os.fsdecode`` makes them.
    Arrow and polars have ``\\xNN`` for such bytes, and the bytes themselves in ``path_bytes``.
    """

    _title = "rows"

    def __init__(self, table: Callable[[], Table]) -> None:
        self._make = table
        self._made: Table | None = None

    @property
    def _table(self) -> Table:
        if self._made is None:
            self._made = self._make()
        return self._made

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.names

    def __len__(self) -> int:
        return len(self._table)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_dicts())

    def __getitem__(self, key: str) -> list[Any]:
        """A column as a list."""
        return self._column(key, 0, None)

    def _column(self, name: str, start: int, end: int | None) -> list[Any]:
        values = self._table.column(name, start, end)
        if self._table.kind(name) == "time":
            return [None if value is None else moment(value) for value in values]
        return values

    def to_dicts(self, start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        """Rows as dictionaries. Moments are ``datetime`` objects, exact to the microsecond."""
        names = self.columns
        columns = [self._column(name, start, end) for name in names]
        return [dict(zip(names, row)) for row in zip(*columns)]

    def to_pandas(self) -> pandas.DataFrame:
        """A ``pandas.DataFrame``. Needs pandas, and not pyarrow."""
        from . import _pandas

        return _pandas.frame(self._table)

    def to_polars(self) -> polars.DataFrame:
        """A ``polars.DataFrame`` that shares the memory of this table. Needs polars 1.3."""
        import polars

        return polars.DataFrame(self._table)

    def to_arrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table`` that shares the memory of this table. Needs pyarrow 14."""
        import pyarrow

        return pyarrow.table(self._table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def __repr__(self) -> str:
        return _html.text_table(self.columns, self.to_dicts(0, SHOWN), len(self), self._title)

    def _repr_html_(self) -> str:
        return _html.table(self.columns, self.to_dicts(0, SHOWN), len(self), self._title)


def moment(nanoseconds: int) -> datetime.datetime:
    """A moment, in UTC."""
    return _EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)


def nanoseconds(time: datetime.datetime | float | None) -> int | None:
    """A moment as the store has it. A ``datetime`` without a zone is local, as Python takes it."""
    if time is None:
        return None
    if isinstance(time, datetime.datetime):
        since = time.astimezone(datetime.timezone.utc) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    return round(time * 10**9)
