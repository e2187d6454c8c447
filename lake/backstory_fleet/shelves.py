"""Files that jobs of earlier shifts made, for later jobs to read.

The memory is bounded. A shelf has the last `PLACES` files of a machine, and one shelf has files
that went to other machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .identities import below

Array = np.ndarray[Any, Any]

PLACES = 16
COMMON = 4096

#: A file on a shelf. `row` is its row in the templates, `owner` and `project` say whose it is, and
#: `copy` which repetition made it.
FILE = np.dtype(
    [
        ("row", np.int64),
        ("owner", np.int64),
        ("project", np.int64),
        ("number", np.int64),
        ("copy", np.int64),
        ("device", np.int64),
        ("inode", np.int64),
        ("size", np.int64),
        ("modified", np.int64),
        ("changed", np.int64),
        ("born", np.int64),
        ("content", np.uint64),
    ]
)


class Shelves:
    """Files that can be taken, and those that the present shift will add."""

    def __init__(self, machines: int, seed: int) -> None:
        self._seed = seed
        self._own = np.zeros((machines, PLACES), FILE)
        self._filled = np.zeros(machines, np.int64)
        self._common = np.zeros(COMMON, FILE)
        self._common_filled = 0
        self._new: list[Array] = []

    def put(self, files: Array) -> None:
        """Adds files once the shift has ended."""
        self._new.append(files)

    def end_shift(self) -> None:
        """Makes the files of this shift available."""
        if not self._new:
            return
        files = np.concatenate(self._new)
        self._new = []
        order = np.argsort(files["owner"], kind="stable")
        files = files[order]
        owners, first, counts = np.unique(files["owner"], return_index=True, return_counts=True)
        turn = np.arange(len(files)) - np.repeat(first, counts)
        # The last files of each machine replace its oldest ones.
        turn -= np.repeat(np.maximum(counts - PLACES, 0), counts)
        kept = turn >= 0
        files, turn = files[kept], turn[kept]
        place = (self._filled[files["owner"]] + turn) % PLACES
        self._own[files["owner"], place] = files
        self._filled[owners] += np.minimum(counts, PLACES)
        some = files[:: max(1, len(files) // COMMON)][:COMMON]
        self._common[(self._common_filled + np.arange(len(some))) % COMMON] = some
        self._common_filled += len(some)

    def take(self, machine: Array, *keys: Any) -> tuple[Array, Array]:
        """A file of each machine's shelf, and whether there is one."""
        count = np.minimum(self._filled[machine], PLACES)
        return self._own[machine, below(np.maximum(count, 1), self._seed, 21, *keys)], count > 0

    def take_common(self, *keys: Any) -> tuple[Array, bool]:
        """A file of any machine for each key, and whether there is one."""
        count = min(self._common_filled, COMMON)
        return self._common[below(max(count, 1), self._seed, 22, *keys)], count > 0
