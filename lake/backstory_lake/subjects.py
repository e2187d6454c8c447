"""The files that a question is about, as a user names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .engine import Engine
from .errors import LakeError, MisuseError
from .printing import escaped, is_utf8, text


def at_path(engine: Engine, path: str) -> str:
    """A condition for the versions with a path. One that is not UTF-8 is known by its bytes."""
    if is_utf8(path):
        return f"path = {engine.quoted(path)}"
    return f"path_bytes = unhex('{path.encode(errors='surrogateescape').hex()}')"


@dataclass(frozen=True)
class Subjects:
    """Keys of files, digests, and paths: all files that one of them names."""

    keys: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def files(self, engine: Engine, all_there: bool = True) -> list[int]:
        """The keys of the files in a lake. By default, each name must have a file."""
        found = {int(str(row[0])): row[1:] for row in engine.ask(self._sql(engine)).rows}
        missing = [str(key) for key in self.keys if key not in found]
        missing += sorted(set(self.digests) - {row[0] for row in found.values()})
        known = {name for row in found.values() for name in _names(row)}
        missing += sorted(set(self.paths) - known)
        if missing and all_there:
            named = ", ".join(escaped(text(one)) for one in missing)
            relative = any(one in missing and _is_relative(one) for one in self.paths)
            hint = " (recorded paths are absolute)" if relative else ""
            raise LakeError(
                f"{engine.lake.name} has no file {named}{hint}; `backstory query --lake "
                f"{engine.lake.name} 'SELECT file, digest, path FROM files'` lists all"
            )
        return sorted(found)

    def _sql(self, engine: Engine) -> str:
        conditions = [
            f"{column} IN ({', '.join(values)})"
            for column, values in (
                ("file", [str(key) for key in self.keys]),
                ("digest", [engine.quoted(one) for one in self.digests]),
            )
            if values
        ]
        conditions += [at_path(engine, path) for path in self.paths]
        if not conditions:
            raise MisuseError("the question names no file: give --file, --digest or --path")
        return f"SELECT file, digest, path, path_bytes FROM files WHERE {' OR '.join(conditions)}"


def _is_relative(path: str) -> bool:
    """True for a path that depends on a directory. Addresses and pipes have a colon."""
    return not path.startswith("/") and ":" not in path


def _names(row: tuple[Any, ...]) -> list[str]:
    """The path of a version as text, and if it is not UTF-8, as a word of the command line."""
    _, path, odd = row
    return [path, *([] if odd is None else [bytes(odd).decode(errors="surrogateescape")])]
