"""Results as tables, for pandas, polars, Arrow, and notebooks."""

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

#: The number of rows that a notebook or a terminal shows.
SHOWN = 20


class Answer:
    """A table.

    - ``to_pandas()``, ``to_polars()`` and ``to_arrow()`` convert it to a frame. Any library that
      supports the Arrow PyCapsule interface accepts the object itself.
    - ``to_dicts()`` and iteration return rows as dictionaries.
    - A notebook shows the object as a table.

    A text that is not UTF-8 has lone surrogates here and in pandas, as from ``os.fsdecode``. Arrow
    and polars have ``\\xNN`` for such bytes, and the bytes themselves in ``path_bytes``.
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
        """Returns a column as a list."""
        return self._column(key, 0, None)

    def _column(self, name: str, start: int, end: int | None) -> list[Any]:
        values = self._table.column(name, start, end)
        if self._table.kind(name) == "time":
            return [None if value is None else moment(value) for value in values]
        return values

    def to_dicts(self, start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
        """Returns rows as dictionaries. Times are ``datetime`` objects, exact to 1 µs."""
        names = self.columns
        columns = [self._column(name, start, end) for name in names]
        return [dict(zip(names, row)) for row in zip(*columns)]

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a ``pandas.DataFrame``. Needs pandas, but not pyarrow."""
        from . import _pandas

        return _pandas.frame(self._table)

    def to_polars(self) -> polars.DataFrame:
        """Returns a ``polars.DataFrame`` that shares the memory of this table. Needs polars 1.3."""
        import polars

        return polars.DataFrame(self._table)

    def to_arrow(self) -> pyarrow.Table:
        """Returns a ``pyarrow.Table`` that shares the memory of this table. Needs pyarrow 14."""
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
    """Converts nanoseconds since 1970 to a ``datetime`` in UTC."""
    return _EPOCH + datetime.timedelta(microseconds=nanoseconds // 1000)


def nanoseconds(time: datetime.datetime | float | None) -> int | None:
    """Converts a time to nanoseconds since 1970. A ``datetime`` without a zone is in local time."""
    if time is None:
        return None
    if isinstance(time, datetime.datetime):
        since = time.astimezone(datetime.timezone.utc) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    return round(time * 10**9)
