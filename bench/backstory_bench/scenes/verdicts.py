"""The verdicts of reconstructions, as the tables count them."""

from __future__ import annotations

from collections.abc import Mapping

EQUAL = ("equal", "equal-but-volatile", "equal-where-recorded")
DIFFERENT = "different"
NOTHING = "nothing-compared"
"""The verdict of a reconstruction in which nothing differs, because nothing was compared."""


def compared(row: Mapping[str, object]) -> bool:
    """Returns whether bytes or files of a row were compared.

    A series without the column `files_compared` compared no files. One without both columns does
    not say what it compared.
    """
    counts = [row.get(field) for field in ("bytes_compared", "files_compared")]
    known = [int(str(count)) for count in counts if count not in (None, "")]
    return any(known) or not known


def verdict_of(row: Mapping[str, object]) -> str:
    """Returns the verdict of a row. A row without anything compared is not equal."""
    verdict = str(row["verdict"])
    return verdict if verdict not in EQUAL or compared(row) else NOTHING
