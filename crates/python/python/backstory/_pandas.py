"""Converts a table to a pandas frame without pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import pandas

if TYPE_CHECKING:
    from ._core import Table


def frame(table: Table) -> pandas.DataFrame:
    """Returns the frame. Numbers are read from the table's memory without Python objects."""
    columns = {name: _column(table, name) for name in table.names}
    made: pandas.DataFrame = pandas.DataFrame(columns, index=pandas.RangeIndex(len(table)))
    return made


def _column(table: Table, name: str) -> Any:
    kind = table.kind(name)
    if kind == "text":
        texts = table.column(name)
        try:
            return pandas.Series(texts)
        except UnicodeEncodeError:
            # The text contains lone surrogates.
            return pandas.Series(texts, dtype=object)
    if kind == "list":
        return pandas.Series(table.column(name), dtype=object)
    if kind == "bool":
        truths = table.column(name)
        if None in truths:
            return pandas.array(truths, dtype="boolean")
        return numpy.array(truths, dtype=bool)
    buffer, bitmap, words = table.buffers(name)
    values: Any = numpy.asarray(buffer)
    absent = None if bitmap is None else _absent(bitmap, len(values))
    if kind == "label":
        codes = values if absent is None else numpy.where(absent, -1, values)
        return pandas.Categorical.from_codes(codes, categories=pandas.Index(words or []))
    if kind == "time":
        moments = values.view("datetime64[ns]")
        if absent is not None:
            moments = numpy.where(absent, numpy.datetime64("NaT", "ns"), moments)
        return pandas.DatetimeIndex(moments).tz_localize("UTC")
    if absent is None:
        return values
    return pandas.arrays.IntegerArray(values.copy(), absent)


def _absent(bitmap: object, rows: int) -> Any:
    bits = numpy.unpackbits(numpy.asarray(bitmap), bitorder="little", count=rows)
    return bits == 0
