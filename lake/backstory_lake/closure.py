"""Closures: the lineage of files that are asked about often, kept in a directory.

An update gives the same rows as a new closure. It begins where new runs join the nodes that are
known, and follows the steps from there. These cases need a closure from the beginning:

- A run left the lake, as after `forget` or `expire`.
- With a rule about hubs: a known file became a hub, or a new file of the question has its content.
- A step between known runs is gone: a run that was shipped late made an older version of a content.

The directory has `closure.json`, which names a directory with the tables `nodes`, `links`, `runs`
and, with a rule about hubs, `hubs`. The links into hubs are stored, and a summary leaves them out
when it is shown. All tables are Parquet files with numbers, and names of flows. An interrupted
update changes nothing: `closure.json` is replaced last.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import hubs, rounds
from .engine import Engine
from .errors import LakeError, MisuseError
from .reading import intact
from .rounds import ALL_LINKS, FRONTIER, NODES, Rounds, Way
from .subjects import Subjects

#: The version of the directory's form. A greater one is refused. That with a rule about hubs is 2:
#: programs of form 1 do not keep the rule.
FORM = 2
#: The results of an update.
UNCHANGED, EXTENDED, ANEW = "unchanged", "extended", "made anew"

SUBJECTS = ("keys", "digests", "paths")
_LINK = ("source", "target", "flow", "how", "certainty", "since", "until")
_STORED_NODES, _STORED_LINKS, _STORED_RUNS = "lake_old_nodes", "lake_old_links", "lake_old_runs"
#: The stored report about hubs, as `hubs.REPORT`.
STORED_HUBS = "lake_old_hubs"

# The steps between runs that a closure has or should have: NULL is a `how`, too.
_STEP = "source, target, coalesce(how, '') AS how, certainty"


@dataclass(frozen=True)
class Closure:
    """A closure: its lake, its files, and how steps are followed."""

    directory: Path
    lake: str
    subjects: Subjects
    way: Way
    #: The directory with the tables.
    tables: str

    @classmethod
    def open(cls, directory: Path, engine: Engine) -> Closure:
        """Reads `closure.json`."""
        path = directory / "closure.json"
        if not path.is_file():
            raise LakeError(
                f"{directory} is no closure: it has no file closure.json; "
                "`backstory-lake closure make` makes one"
            )
        with intact(f"the file {path}"):
            found: dict[str, Any] = json.loads(path.read_text())
            form = int(found["form"])
            if form <= FORM:
                subjects = Subjects(*(tuple(found["subjects"][one]) for one in SUBJECTS))
                way = Way(**found["way"])
                opened = cls(directory, str(found["lake"]), subjects, way, str(found["tables"]))
        if form > FORM:
            raise LakeError(
                f"{directory} has form {form}, and this program knows forms up to {FORM}: "
                "install a newer backstory-lake"
            )
        if opened.lake != engine.lake.identity:
            raise MisuseError(f"{directory} is the closure of another lake than {engine.lake.name}")
        if "/" in opened.tables or opened.tables.startswith("."):
            raise LakeError(f"{path} names tables outside of its directory; make the closure again")
        return opened

    def load(self, engine: Engine) -> None:
        """Gives the tables their names."""
        names = {"nodes": _STORED_NODES, "links": _STORED_LINKS, "runs": _STORED_RUNS}
        if self.way.hubs is not None:
            names["hubs"] = STORED_HUBS
        for table, name in names.items():
            place = self.directory / self.tables / table
            with intact(f"the table {place} of a closure"):
                engine.load(name, place)

    def update(self, engine: Engine) -> str:
        """Follows the steps of new runs. Returns what was done."""
        self.load(engine)
        now = "SELECT run FROM runs"
        gone = f"SELECT run FROM {_STORED_RUNS} EXCEPT {now}"
        fresh = f"{now} EXCEPT SELECT run FROM {_STORED_RUNS}"
        is_gone, is_fresh = (any(engine.ask(f"{sql} LIMIT 1").rows) for sql in (gone, fresh))
        if not (is_gone or is_fresh):
            return UNCHANGED
        if is_gone or not self._extend(engine):
            rounds.lineage(engine, self._files(engine), self.way)
            self._save(engine)
            return ANEW
        self._save(engine)
        return EXTENDED

    def _extend(self, engine: Engine) -> bool:
        """Makes the tables from the stored ones. False if new runs changed what was followed."""
        way = Rounds(engine, self.way)
        here, _ = self.way.ends
        certain = "true" if self.way.possible else "certainty = 'seen'"
        # With a set operation, rows that a closure has twice do not matter.
        engine.keep("lake_old_jumps", f"SELECT {_STEP} FROM {_STORED_LINKS} WHERE flow = 'same'")
        engine.keep(
            "lake_now_jumps",
            f"SELECT {_STEP} FROM {way.jumps} j JOIN "
            f"(SELECT DISTINCT node FROM {_STORED_NODES}) n ON n.node = j.here WHERE {certain}",
        )
        lost = "SELECT * FROM lake_old_jumps EXCEPT SELECT * FROM lake_now_jumps"
        if any(engine.ask(f"{lost} LIMIT 1").rows):
            return False
        new = "SELECT * FROM lake_now_jumps EXCEPT SELECT * FROM lake_old_jumps"
        engine.keep("lake_met", f"SELECT DISTINCT {here} AS node FROM ({new}) n")
        roots = rounds.roots(self._files(engine))
        if self._hubs_changed(engine, roots):
            return False
        engine.keep("lake_roots", roots)
        engine.keep(
            "lake_new_roots",
            f"SELECT r.* FROM lake_roots r LEFT JOIN {_STORED_NODES} n ON n.node = r.node "
            "WHERE n.node IS NULL",
        )
        count = engine.keep(
            FRONTIER,
            f"SELECT n.* FROM {_STORED_NODES} n JOIN lake_met m ON m.node = n.node "
            "UNION ALL SELECT * FROM lake_new_roots",
        )
        engine.keep(NODES, f"SELECT * FROM {_STORED_NODES} UNION ALL SELECT * FROM lake_new_roots")
        way.follow(count)
        self._relink(engine, way)
        return True

    def _hubs_changed(self, engine: Engine, roots: str) -> bool:
        """Finds the hubs. True if a known file became a hub, or ceased to be one."""
        if self.way.hubs is None:
            return False
        hubs.find(engine, self.way.hubs, roots)
        changed = (
            f"SELECT 1 FROM {_STORED_NODES} n LEFT JOIN {hubs.NODES} h ON h.node = n.node "
            "WHERE n.far <> (h.node IS NULL) LIMIT 1"
        )
        return any(engine.ask(changed).rows)

    def _relink(self, engine: Engine, way: Rounds) -> None:
        """Replaces the links of the nodes that changed."""
        here, _ = self.way.ends
        engine.keep(
            "lake_changed",
            f"SELECT node FROM lake_met UNION SELECT n.node FROM {NODES} n LEFT JOIN "
            f"{_STORED_NODES} o ON o.node = n.node AND o.depth = n.depth AND o.moment = n.moment "
            "WHERE o.node IS NULL",
        )
        count = engine.keep(
            "lake_changed_nodes",
            f"SELECT n.* FROM {NODES} n JOIN lake_changed c ON c.node = n.node",
        )
        columns = ", ".join(_LINK)
        links = (
            f"SELECT {columns} FROM {_STORED_LINKS} l LEFT JOIN lake_changed c "
            f"ON c.node = l.{here} WHERE c.node IS NULL UNION ALL "
            f"SELECT {columns} FROM ({way.links('lake_changed_nodes', count)}) changed"
        )
        rounds.conclude(engine, way, links)

    def _files(self, engine: Engine) -> list[int]:
        """The files of the closure. Those that were forgotten are not in the lake any more."""
        return self.subjects.files(engine, all_there=False)

    def _save(self, engine: Engine) -> None:
        """Replaces the stored tables by those of the engine."""
        tables = uuid.uuid4().hex
        made = self.directory / tables
        made.mkdir(parents=True)
        try:
            engine.save(f"SELECT * FROM {NODES}", made / "nodes")
            engine.save(f"SELECT {', '.join(_LINK)} FROM {ALL_LINKS}", made / "links")
            engine.save("SELECT run FROM runs", made / "runs")
            if self.way.hubs is not None:
                engine.save(f"SELECT {', '.join(hubs.COLUMNS)} FROM {hubs.REPORT}", made / "hubs")
            facts = {
                "form": 1 if self.way.hubs is None else FORM,
                "lake": self.lake,
                "subjects": asdict(self.subjects),
                "way": asdict(self.way),
                "tables": tables,
            }
            named = self.directory / f"{tables}.json"
            named.write_text(json.dumps(facts, indent=2) + "\n")
            os.replace(named, self.directory / "closure.json")
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        if self.tables:
            # A reader that has begun may fail. An older answer must not stay after `forget`.
            shutil.rmtree(self.directory / self.tables, ignore_errors=True)


def make(directory: Path, engine: Engine, subjects: Subjects, way: Way) -> Closure:
    """Makes a closure in a new or empty directory."""
    if (directory / "closure.json").exists():
        raise MisuseError(f"{directory} is a closure already: `backstory-lake closure update` it")
    if directory.exists() and any(directory.iterdir()):
        raise MisuseError(f"{directory} is not empty: name a new directory")
    made = Closure(directory, engine.lake.identity, subjects, way, "")
    rounds.lineage(engine, subjects.files(engine), way)
    made._save(engine)
    return Closure.open(directory, engine)


def show(closure: Closure, engine: Engine) -> tuple[str, int]:
    """The links of a closure, and the number of runs by which the lake differs from it."""
    closure.load(engine)
    now, then = "SELECT run FROM runs", f"SELECT run FROM {_STORED_RUNS}"
    differ = f"({now} EXCEPT {then}) UNION ALL ({then} EXCEPT {now})"
    links = hubs.left_out(closure.way, _STORED_LINKS, STORED_HUBS)
    return rounds.answer(f"{links} kept"), sum(1 for _ in engine.ask(differ).rows)
