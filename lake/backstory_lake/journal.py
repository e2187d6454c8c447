"""The sender's own record of what it sent to a lake.

A sender is a store, not a name. Hosts may have the same name, and a cloned disk has the boot ids
of its original. The journal names each shipment before it is committed. So a
shipment under the sender's name that the journal does not have came from a clone.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import LakeError


class Journal:
    """The sender's name, and its shipments to one lake."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.machine = str(uuid.uuid4())
        self.shipments: set[int] = set()
        try:
            known = json.loads(path.read_text())
            self.machine, self.shipments = known["machine"], set(known["shipments"])
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError) as error:
            raise LakeError(
                f"{path} is damaged: {error}; remove it, and the store gets a new name in the lake"
            ) from error

    def add(self, shipment: int) -> None:
        """Names a shipment that is about to be committed."""
        self.shipments.add(shipment)
        self._save()

    def begin_anew(self) -> None:
        """Takes a new name: another machine uses the old one."""
        self.machine = str(uuid.uuid4())
        self.shipments = set()
        self._save()

    def _save(self) -> None:
        text = json.dumps({"machine": self.machine, "shipments": sorted(self.shipments)})
        new = self._path.with_suffix(".new")
        with new.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._path)


@contextmanager
def opened(store: Path, lake: str) -> Iterator[Journal]:
    """The journal of a store for a lake. One process at a time has it."""
    directory = store / "lakes"
    try:
        directory.mkdir(exist_ok=True)
        with (directory / f"{lake}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Journal(directory / f"{lake}.json")
    except PermissionError as error:
        raise LakeError(f"cannot write the journal of shipments: {error}") from error
