"""The shortest ways from a question's files to some processes of the answer.

In: the links of an answer (`rounds`). Out: the steps of a way to each process. A step is a process
with the file that it took, and the file that it made. As in `backstory origin --json`, the file on
the side of the question comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import rounds
from .engine import Engine

#: The links, the nodes of the last round, and all nodes with the node before each.
_LINKS, _FRONTIER, _REACHED = "lake_way_links", "lake_way_frontier", "lake_way_reached"

Step = dict[str, Any]


def to_processes(
    engine: Engine, files: Iterable[int], way: rounds.Way, wanted: str
) -> dict[int, list[Step]]:
    """The steps to each of the processes that a query has. The last step ends nowhere."""
    here, there = way.ends
    engine.keep(_LINKS, f"SELECT DISTINCT {here} AS here, {there} AS there FROM {rounds.LINKS}")
    begin = f"SELECT node, CAST(NULL AS BIGINT) AS prior FROM ({rounds.roots(files)}) begun"
    count = engine.keep(_FRONTIER, begin)
    engine.keep(_REACHED, f"SELECT * FROM {_FRONTIER}")
    goals = f"SELECT ~process FROM ({wanted}) goals"
    turn = 0
    while count and _are_missing(engine, goals):
        count = engine.keep(
            _FRONTIER,
            f"""SELECT l.there AS node, min(l.here) AS prior FROM {_LINKS} l
JOIN {_FRONTIER} f ON f.node = l.here
WHERE l.there NOT IN (SELECT node FROM {_REACHED}) GROUP BY l.there""",
        )
        turn += 1
        engine.renew(
            _REACHED, f"SELECT * FROM {_REACHED} UNION ALL SELECT * FROM {_FRONTIER}", turn
        )
    made, origin = ("prior", "node") if way.direction == "back" else ("node", "prior")
    nodes = engine.ask(
        f"""WITH RECURSIVE trace(goal, node, prior, back) AS (
  SELECT node, node, prior, 0 FROM {_REACHED} WHERE node IN ({goals})
  UNION ALL
  SELECT t.goal, r.node, r.prior, t.back + 1 FROM trace t JOIN {_REACHED} r ON r.node = t.prior)
SELECT ~t.goal, f.path, p.process, p.command, p.run, p.pid, r.host
FROM trace t LEFT JOIN files f ON f.file = t.node
LEFT JOIN (SELECT file, origin, min(process) AS process FROM derivations GROUP BY file, origin) d
  ON d.file = t.{made} AND d.origin = t.{origin}
LEFT JOIN processes p ON p.process = coalesce(d.process, ~t.node)
LEFT JOIN runs r ON r.run = p.run ORDER BY t.goal, t.back DESC"""
    )
    found: dict[int, list[Step]] = {}
    last: dict[int, str] = {}
    for goal, path, process, command, run, pid, host in nodes.rows:
        steps = found.setdefault(goal, [])
        if process is not None:
            step = {"from": last.pop(goal, None), "command": command, "run": run}
            steps.append(step | {"host": host, "pid": pid, "to": None})
        if path is not None:
            last[goal] = path
            if steps:
                # A file that another run knows has its last name.
                steps[-1]["to"] = path
    return found


def _are_missing(engine: Engine, goals: str) -> bool:
    missing = f"SELECT count(*) FROM ({goals} EXCEPT SELECT node FROM {_REACHED}) missing"
    return bool(next(engine.ask(missing).rows)[0])
