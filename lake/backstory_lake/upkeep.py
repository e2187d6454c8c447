"""`compact`: joins small files, drops rows that were never published, and removes old snapshots.

Rows without a run in `runs` belong to an interrupted shipment, or to one in progress. They are
dropped if an earlier `compact` saw them, too, at least a day before. A shipment lasts less than
half a day. So no clock but that of the machine that compacts matters.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from .lake import UNPUBLISHED_PROPERTY, Lake
from .reading import data_files, rows_of, schema_of
from .rewriting import Replacement, remove_former, replace
from .tables import RUNS, LakeTable

#: Seconds that a row may be unpublished.
GRACE = 86_400
#: Bytes of a data file that is large enough, and of those that are joined at once.
LARGE, JOINED = 128_000_000, 256_000_000


@dataclass
class Compacted:
    """Numbers of data files, and of files that were removed."""

    before: int = 0
    after: int = 0
    removed: int = 0


def compact(lake: Lake, grace: int = GRACE) -> Compacted:
    """Compacts all tables."""
    report = Compacted()
    published = _published(lake.table(RUNS))
    seen: set[int] = set()
    known = json.loads(lake.table(RUNS).properties.get(UNPUBLISHED_PROPERTY, "{}"))
    now = int(time.time())
    dead = {int(shipment) for shipment, since in known.items() if now - since >= grace}
    for of in lake.tables:
        report.before += len(data_files(lake.table(of)))
        unpublished: set[int] = set()

        def joined(
            table: Table, of: LakeTable = of, found: set[int] = unpublished
        ) -> Iterable[Replacement]:
            found.clear()
            for group in _groups(data_files(table)):
                rows = pa.concat_tables(rows_of(table, of, file) for file in group)
                if of is RUNS:
                    yield from [(group, rows)] if len(group) > 1 else []
                    continue
                loose = pc.invert(_is_published(rows, published))
                here = set(pc.unique(rows.filter(loose)["shipment"]).to_pylist())
                found |= here
                drop = pc.and_(loose, pc.is_in(rows["shipment"], pa.array(dead, pa.int64())))
                if len(group) > 1 or pc.any(drop).as_py():
                    yield group, rows.filter(pc.invert(drop))

        replace(lake, of, joined)
        seen |= unpublished
        report.after += len(data_files(lake.table(of)))
    with lake.table(RUNS).transaction() as transaction:
        # A shipment that was published since is not among these next time.
        kept = {str(one): known.get(str(one), now) for one in sorted(seen - dead)}
        transaction.set_properties({UNPUBLISHED_PROPERTY: json.dumps(kept)})
    for of in lake.tables:
        report.removed += remove_former(lake, of)
    return report


def _published(table: Table) -> pa.Array:
    """The published runs, each as the text `SHIPMENT/NUMBER`."""
    # A damaged file must not make rows of the other tables look unpublished.
    columns = ("shipment", "number", "forgotten")
    # A lake without runs has no file.
    rows = pa.concat_tables(
        [schema_of(RUNS, columns).empty_table()]
        + [rows_of(table, RUNS, file, columns) for file in data_files(table)]
    )
    return _names(rows.filter(pc.invert(pc.coalesce(rows["forgotten"], False))))


def _is_published(rows: pa.Table, published: pa.Array) -> pa.ChunkedArray:
    return pc.is_in(_names(rows), published)


def _names(rows: pa.Table) -> pa.Array:
    texts = [rows[name].cast(pa.string()) for name in ("shipment", "number")]
    joined = pc.binary_join_element_wise(*texts, "/")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _groups(files: list[DataFile]) -> Iterable[list[DataFile]]:
    """Files of one partition that are joined at once. Large files stay alone."""
    partitions: dict[tuple[object, ...], list[DataFile]] = {}
    for file in files:
        key = tuple(file.partition[at] for at in range(2))
        partitions.setdefault(key, []).append(file)
    for part in partitions.values():
        group: list[DataFile] = []
        size = 0
        for file in sorted(part, key=lambda file: file.file_size_in_bytes):
            is_full = size + file.file_size_in_bytes > JOINED or file.file_size_in_bytes > LARGE
            if group and is_full:
                yield group
                group, size = [], 0
            group.append(file)
            size += file.file_size_in_bytes
        if group:
            yield group
