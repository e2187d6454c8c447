"""The digests of data files, which their names have.

A damaged file can be valid Parquet: then its rows are lost or changed without an error. So the name
of a data file ends with the SHA-256 digest of its bytes, and readers compare. A question of a local
lake compares a file once, and again if its size, times or inode change. The caller's cache says
which files were compared. Files of an older writer have no digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import LakeError

#: Bytes that are compared with a message, because that takes long.
MANY = 1_000_000_000
#: Seconds after which the list of compared files is written again.
KEEP = 5

_NAMED = re.compile(r"-([0-9a-f]{64})\.parquet$")


def named_by(content: Any) -> str:
    """A new name for a data file with this content."""
    return f"{uuid.uuid4()}-{hashlib.sha256(content).hexdigest()}.parquet"


def digest_in(path: str) -> str | None:
    """The digest in a path, if it has one."""
    found = _NAMED.search(path)
    return found[1] if found else None


def check(path: str, content: Any) -> None:
    """Refuses the content of a data file that is not the one that was written."""
    wanted = digest_in(path)
    if wanted and hashlib.sha256(content).hexdigest() != wanted:
        raise damaged(path)


def damaged(path: str) -> LakeError:
    """The error about a file with other bytes."""
    return LakeError(f"the data file {path} was changed since it was written: restore it")


def check_once(location: str, paths: Iterable[str]) -> None:
    """Compares the local data files of a table that were not compared since they changed last."""
    cache = _cache(location)
    known = _known(cache)
    states = {path: _state(path) for path in paths if digest_in(path)}
    new = [path for path in states if known.get(path) != states[path]]
    if not new:
        return
    size = sum(states[path][1] for path in new)
    if size >= MANY:
        print(
            f"backstory-lake: comparing {len(new)} data files of {location} with their digests "
            f"({size / 1e9:.1f} GB), once",
            file=sys.stderr,
        )
    # A scan reads some of the files. Files that are gone leave the list.
    compared = {path: state for path, state in known.items() if os.path.exists(path)}
    kept = time.monotonic()
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, is_as_written in zip(new, pool.map(_is_as_written, new), strict=True):
                if not is_as_written:
                    raise damaged(path)
                compared[path] = states[path]
                if time.monotonic() - kept > KEEP:
                    _write(cache, compared)
                    kept = time.monotonic()
    finally:
        # After a damaged file or an interrupt, the next question goes on from here.
        _write(cache, compared)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Names the data file that cannot be read, and the remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror
        raise LakeError(f"cannot read the data file {path}: {reason}; restore it") from error


def _is_as_written(path: str) -> bool:
    with _explained(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest_in(path)


def _state(path: str) -> list[int]:
    with _explained(path):
        found = os.stat(path)
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _cache(location: str) -> Path | None:
    """Where the list of a table's compared files is, if this user can have one."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        # The user of a container may have no home.
        return None
    name = hashlib.sha256(location.encode()).hexdigest()[:32]
    return Path(base) / "backstory-lake" / f"{name}.json"


def _known(cache: Path | None) -> dict[str, Any]:
    try:
        found = json.loads(cache.read_bytes()) if cache else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(cache: Path | None, states: dict[str, Any]) -> None:
    """Keeps what was compared. Without a cache, the next question compares again."""
    if cache is None:
        return
    new = cache.with_name(f"{cache.name}.{uuid.uuid4()}")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(states))
        new.replace(cache)
    except OSError:
        with suppress(OSError):
            new.unlink()
