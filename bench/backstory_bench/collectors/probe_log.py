"""Reads PROBE's transcribed log: a compressed archive with a MessagePack stream for each thread.

The streams are named `pids/PID/EPOCH/TID`. An operation is a map with its kind and arguments in
`data`. A path is a name and the number of the open directory to which it is relative. The reader
resolves names against the process's first working directory, because the log does not distinguish a
change of directory from an opened directory. The error fields are ignored: version 53c5027 does not
initialise them. A failed operation has no inode.
"""

from __future__ import annotations

import itertools
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .base import Log


def read(log: Path) -> Log:
    """Reads opened and executed files, and process starts by the first word of the arguments.

    # Errors
    `ValueError` if the package msgpack is missing.
    """
    cwd = (log / "cwd").read_text()
    files: set[str] = set()
    ran: dict[int, list[list[bytes]]] = {}
    parents: dict[int, int] = {}
    for operation in _operations(log / "probe_log"):
        data = operation["data"]
        if data["type"] == "InitExecEpoch":
            parents.setdefault(data["pid"], data["parent_pid"])
            ran.setdefault(data["pid"], []).append(data["argv"])
        elif data["type"] in ("Open", "Exec") and data["path"].get("name") is not None:
            inode = data["inode"]
            if data["type"] == "Exec" or (inode["number"] and not stat.S_ISDIR(inode["mode"])):
                files.add(os.path.normpath(os.path.join(cwd, os.fsdecode(data["path"]["name"]))))
    return Log(files, _starts(ran, parents))


def _starts(ran: dict[int, list[list[bytes]]], parents: dict[int, int]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for pid, programs in ran.items():
        above = ran.get(parents[pid], [])[-1:]
        # A forked child starts with the arguments of its parent, a spawned child with its own.
        chain = programs if above == programs[:1] else above + programs
        found.update(itertools.pairwise(os.path.basename(os.fsdecode(argv[0])) for argv in chain))
    return found


def _operations(archive: Path) -> Iterator[dict[str, Any]]:
    """Yields the operations of all threads, in the order of processes and epochs."""
    try:
        import msgpack
    except ModuleNotFoundError as error:
        raise ValueError(
            "PROBE's log needs the package msgpack (pip install -r bench/requirements-report.txt)"
        ) from error
    with tarfile.open(archive, "r:gz") as tar:
        threads = [m for m in tar.getmembers() if m.isfile() and m.name.startswith("pids/")]
        for member in sorted(threads, key=lambda m: [int(word) for word in m.name.split("/")[1:]]):
            stream = tar.extractfile(member)
            for item in msgpack.Unpacker(stream, raw=False, strict_map_key=False):
                yield from (one for one in (item if isinstance(item, list) else [item]) if isinstance(one, dict))
