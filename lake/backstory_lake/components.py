"""Contamination: all that came from withdrawn files, in connected components.

The contamination of some files is the answer of `uses` about all of them. Two of its nodes are in
one component if its links join them, whatever the links' direction. So files of two components have
no contaminated node in common. Each component has a withdrawn file. The least key of its withdrawn
files is its name.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import rounds
from .engine import Engine

#: The nodes of the last question: `component`, `process` or `file`, and whether it was withdrawn.
MEMBERS = "lake_members"

# Each node takes the least label among its own, those of its neighbours, and its label's label. The
# last makes chains short: their ends need not wait for a label to pass each node.
_LABELS = """
SELECT node, min(label) AS label, min(label) < min(former) AS changed FROM (
  SELECT node, label, label AS former FROM lake_labels
  UNION ALL
  SELECT p.there, l.label, NULL FROM lake_labels l JOIN lake_neighbours p ON p.here = l.node
  UNION ALL
  SELECT l.node, m.label, NULL FROM lake_labels l JOIN lake_labels m ON m.node = l.label) labels
GROUP BY node"""

_MEMBERS = """
SELECT c.component, CASE WHEN l.node < 0 THEN ~l.node END AS process,
  CASE WHEN l.node >= 0 THEN l.node END AS file, w.node IS NOT NULL AS withdrawn
FROM lake_labels l
JOIN (
  SELECT g.label, min(g.node) AS component
  FROM lake_labels g JOIN lake_withdrawn o ON o.node = g.node GROUP BY g.label) c
  ON c.label = l.label
LEFT JOIN lake_withdrawn w ON w.node = l.node"""

#: A row for each component, and for each member of one.
SUMMARY = f"""
SELECT m.component, min(f.path) AS withdrawn_path,
  count(DISTINCT CASE WHEN m.withdrawn THEN m.file END) AS withdrawn,
  count(m.file) AS files, count(m.process) AS processes,
  count(DISTINCT r.run) AS runs, count(DISTINCT r.host) AS hosts
FROM {MEMBERS} m
LEFT JOIN files f ON f.file = m.component
LEFT JOIN files g ON g.file = m.file LEFT JOIN processes p ON p.process = m.process
LEFT JOIN runs r ON r.run = coalesce(g.run, p.run)
GROUP BY m.component ORDER BY files DESC, m.component"""

NAMED = f"""
SELECT m.component, m.file, m.process, m.withdrawn, r.host, r.run,
  coalesce(g.path, p.command) AS name
FROM {MEMBERS} m
LEFT JOIN files g ON g.file = m.file LEFT JOIN processes p ON p.process = m.process
LEFT JOIN runs r ON r.run = coalesce(g.run, p.run)
ORDER BY m.component, m.file, m.process"""


def components(
    engine: Engine, files: Iterable[int], bound: int | None = None, possible: bool = True
) -> int:
    """Makes `MEMBERS`. Returns the number of rounds after those of `uses`."""
    rounds.lineage(engine, files, rounds.Way("forth", bound, possible))
    ends = "SELECT DISTINCT {} AS here, {} AS there FROM " + rounds.LINKS
    engine.keep(
        "lake_neighbours",
        f"{ends.format('source', 'target')} UNION {ends.format('target', 'source')}",
    )
    engine.keep("lake_withdrawn", f"SELECT DISTINCT node FROM {rounds.NODES} WHERE root")
    engine.keep(
        "lake_labels",
        f"SELECT DISTINCT node, node AS label, true AS changed FROM {rounds.NODES}",
    )
    turns, changed = 0, True
    while changed:
        turns += 1
        engine.keep("lake_labels", _LABELS)
        changed = any(engine.ask("SELECT 1 FROM lake_labels WHERE changed LIMIT 1").rows)
    engine.keep(MEMBERS, _MEMBERS)
    return turns
