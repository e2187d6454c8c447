"""Hubs: contents that touch everything, such as the C library. By rule, nothing is followed there.

A content is a digest, of at least 64 bytes as in `flows`. A version without one is a content by its
identity, and a version without an identity by its name on its machine. A hub is a content that more
edges of the lake touch than the rule allows. Neither the contents of a question's own files nor
devices that forget are hubs.

`REPORT` has each hub that a question came to. So an answer without a row there is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine import Engine
    from .rounds import Rounds, Way

#: The files of hubs, and the hubs that the question came to: a row for each of their files.
NODES, REPORT = "lake_hub_nodes", "lake_hubs"
#: The columns of a row of `REPORT`.
COLUMNS = ("node", "hub", "edges", "files", "steps", "links")
#: The columns of a hub for the reader.
NAMED = ("path", "digest", "edges", "files", "steps", "links", "rule")


def nodes(most: object, roots: str) -> str:
    """The files of hubs: `most` is the rule, and `roots` has the question's own files."""
    return f"""
SELECT c.node, c.hub, p.edges FROM lake_contents c JOIN (
  SELECT t.hub, count(*) AS edges FROM edges e JOIN lake_contents t ON t.node = e.file
  WHERE {most} IS NOT NULL GROUP BY t.hub HAVING count(*) > {most}) p ON p.hub = c.hub
WHERE NOT EXISTS (SELECT 1 FROM lake_forgetful g WHERE g.node = c.node)
  AND NOT EXISTS (SELECT 1 FROM ({roots}) r JOIN lake_contents o ON o.node = r.node
    WHERE o.hub = c.hub)"""


def counted(hub: str, cut: str, steps: str, links: str) -> str:
    """The report about the files of `cut` with their `hub` and its edges.

    `files` are those of the hub that the question came to. `steps` are not followed from there. A
    summary leaves out `links` into them.
    """
    return f"""
SELECT c.node, {hub} AS hub, c.edges, count(*) OVER (PARTITION BY c.hub) AS files,
  coalesce(b.steps, 0) AS steps, coalesce(i.links, 0) AS links
FROM ({cut}) c
LEFT JOIN (
  SELECT k.hub, count(*) AS steps FROM ({steps}) s JOIN ({cut}) k ON k.node = s.node GROUP BY k.hub
) b ON b.hub = c.hub
LEFT JOIN (
  SELECT k.hub, count(*) AS links FROM ({links}) l JOIN ({cut}) k ON k.node = l.node GROUP BY k.hub
) i ON i.hub = c.hub"""


def named(report: str, summary: str) -> str:
    """A report for the reader. `summary`: whether the rule leaves out links, in SQL."""
    return f"""
SELECT min(f.path) AS path, min(f.digest) AS digest, min(r.edges) AS edges, min(r.files) AS files,
  min(r.steps) AS steps, min(r.links) AS links,
  CASE WHEN {summary} THEN 'summarised' ELSE 'cut' END AS rule
FROM {report} r LEFT JOIN files f ON f.file = r.node GROUP BY r.hub ORDER BY edges DESC, path"""


def find(engine: Engine, most: int, roots: str) -> None:
    """Makes `NODES`."""
    engine.index(NODES, nodes(most, roots), "node")


def report(engine: Engine, way: Way, rounds: Rounds, links: str) -> None:
    """Makes `REPORT`: `links` are those of the answer, and those that a summary leaves out."""
    here, there = way.ends
    count = engine.keep(
        "lake_cut",
        "SELECT n.node, n.depth, n.moment, n.root, true AS near, true AS far, h.hub, h.edges "
        f"FROM lake_nodes n JOIN {NODES} h ON h.node = n.node WHERE NOT n.far",
    )
    steps = f"SELECT {here} AS node FROM ({rounds.links('lake_cut', count)}) beyond"
    into = f"SELECT {there} AS node FROM {links}{'' if way.summary else ' WHERE false'}"
    cut = "SELECT DISTINCT node, hub, edges FROM lake_cut"
    # A number instead of a name: a kept report has no names.
    number = "dense_rank() OVER (ORDER BY c.hub)"
    engine.keep(REPORT, counted(number, cut, steps, into))


def left_out(way: Way, links: str, report: str = REPORT) -> str:
    """The links of an answer: a summary has none into hubs."""
    if not way.summary:
        return links
    return (
        f"(SELECT l.* FROM {links} l LEFT JOIN {report} h ON h.node = l.{way.ends[1]} "
        "WHERE h.node IS NULL)"
    )
