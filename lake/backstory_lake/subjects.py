"""The files that a question is about, as a user names them."""

from __future__ import annotations

from dataclasses import dataclass

from .engine import Engine
from .errors import LakeError, MisuseError


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
        missing += sorted(set(self.paths) - {row[1] for row in found.values()})
        if missing and all_there:
            raise LakeError(
                f"{engine.lake.name} has no file {', '.join(missing)}; `backstory query --lake "
                f"{engine.lake.name} 'SELECT file, digest, path FROM files'` lists all"
            )
        return sorted(found)

    def _sql(self, engine: Engine) -> str:
        digests, paths = ([engine.quoted(one) for one in of] for of in (self.digests, self.paths))
        conditions = [
            f"{column} IN ({', '.join(values)})"
            for column, values in (
                ("file", [str(key) for key in self.keys]),
                ("digest", digests),
                ("path", paths),
            )
            if values
        ]
        if not conditions:
            raise MisuseError("the question names no file: give --file, --digest or --path")
        return f"SELECT file, digest, path FROM files WHERE {' OR '.join(conditions)}"
