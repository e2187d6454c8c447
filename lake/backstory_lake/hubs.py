"""Hubs: contents that touch everything, such as the C library. By rule, nothing is followed there.

A content is a digest, of at least 64 bytes as in `flows`. A version without one is a content by its
identity, and a version without an identity by its name on its machine. A hub is a content that more
edges of the lake touch than the rule allows. Neither the contents of a question's own files nor
devices that forget are hubs.

`REPORT` has each hub that a question came to. So an answer without a row there is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .engine import Engine

if TYPE_CHECKING:
    from .rounds import Rounds, Way

#: The files of hubs, and the hubs that the question came to.
NODES, REPORT = "lake_hub_nodes", "lake_hubs"

_CONTENTS = """
SELECT f.file AS node, f.path, f.digest, CASE
  WHEN f.digest IS NOT NULL AND f.size >= 64 THEN f.digest
  WHEN f.modified_ns IS NOT NULL THEN concat(coalesce(r.machine, ''), ' ', coalesce(f.device, 0),
    ' ', coalesce(f.inode, 0), ' ', coalesce(f.size, 0), ' ', f.modified_ns)
  ELSE concat(coalesce(r.machine, ''), ' ', f.kind, ' ', f.path) END AS hub
FROM files f JOIN runs r ON r.run = f.run"""


def _nodes(most: int, roots: str) -> str:
    return f"""
SELECT c.node, c.path, c.digest, c.hub, p.edges FROM lake_contents c JOIN (
  SELECT t.hub, count(*) AS edges FROM edges e JOIN lake_contents t ON t.node = e.file
  GROUP BY t.hub HAVING count(*) > {most}) p ON p.hub = c.hub
WHERE NOT EXISTS (SELECT 1 FROM lake_forgetful g WHERE g.node = c.node)
  AND NOT EXISTS (SELECT 1 FROM ({roots}) r JOIN lake_contents o ON o.node = r.node
    WHERE o.hub = c.hub)"""


def find(engine: Engine, most: int, roots: str) -> None:
    """Makes `NODES`."""
    engine.view("lake_contents", _CONTENTS)
    engine.index(NODES, _nodes(most, roots), "node")


def report(engine: Engine, way: Way, rounds: Rounds, links: str) -> str:
    """Makes `REPORT`, and returns the links of the answer.

    `files` are those of the hub that the question reached. `steps` were not followed from there. A
    summary leaves out `links` into them.
    """
    here, there = way.ends
    count = engine.keep(
        "lake_cut",
        "SELECT n.node, n.depth, n.moment, n.root, true AS near, true AS far, h.hub "
        f"FROM lake_nodes n JOIN {NODES} h ON h.node = n.node WHERE NOT n.far",
    )
    into = f"SELECT l.*, h.hub FROM ({links}) l LEFT JOIN {NODES} h ON h.node = l.{there}"
    engine.keep("lake_linked", into)
    hubs = "SELECT DISTINCT node, hub FROM lake_cut"
    left_out = "count(*)" if way.summary else "0 * count(*)"
    engine.keep(
        REPORT,
        f"""
SELECT f.path, f.digest, f.edges, f.files, coalesce(b.steps, 0) AS steps,
  coalesce(i.links, 0) AS links, '{"summarised" if way.summary else "cut"}' AS rule
FROM (
  SELECT h.hub, min(h.path) AS path, min(h.digest) AS digest, min(h.edges) AS edges,
    count(DISTINCT h.node) AS files
  FROM {NODES} h JOIN lake_cut c ON c.node = h.node GROUP BY h.hub) f
LEFT JOIN (
  SELECT c.hub, count(*) AS steps
  FROM ({rounds.links("lake_cut", count)}) l JOIN ({hubs}) c ON c.node = l.{here} GROUP BY c.hub) b
  ON b.hub = f.hub
LEFT JOIN (SELECT hub, {left_out} AS links FROM lake_linked WHERE hub IS NOT NULL GROUP BY hub) i
  ON i.hub = f.hub""",
    )
    kept = "SELECT source, target, flow, how, certainty, since, until FROM lake_linked"
    return f"{kept} WHERE hub IS NULL" if way.summary else kept
