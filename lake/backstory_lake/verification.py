"""`check`: compares the data files of a lake with the digests in their names."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import digests
from .errors import LakeError
from .lake import Lake
from .reading import content_of, data_files


@dataclass
class Verified:
    """Numbers of data files, and the errors about damaged ones."""

    sound: int = 0
    unknown: int = 0
    damaged: list[LakeError] = field(default_factory=list)


def verify(lake: Lake) -> Verified:
    """Reads all data files of the present snapshot."""
    report = Verified()
    for of in lake.tables:
        table = lake.table(of)
        for file in data_files(table):
            try:
                digests.check(file.file_path, content_of(table, file.file_path))
            except LakeError as error:
                report.damaged.append(error)
                continue
            if digests.digest_in(file.file_path):
                report.sound += 1
            else:
                report.unknown += 1
    return report
