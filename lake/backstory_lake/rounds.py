"""Lineage round by round: each round follows the steps of the nodes that became better.

In: a question, and an engine. Out: tables of the engine with the nodes, the links and the hubs. The
rules are those of `lineage` in SQL, and without a rule about hubs the links are equal. No row
passes through Python: it only counts the frontier of each round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import hubs
from .engine import Engine
from .errors import MisuseError
from .flows import BROADCAST, FIRST, LAST, LINK, STEPS

#: The tables of a question. `NODES` has the best moment of each node, and of each number of
#: processes if that is bounded. `near` and `far` say whether steps inside runs, and between runs,
#: are followed from there.
NODES, FRONTIER, LINKS = "lake_nodes", "lake_frontier", "lake_links"
#: The nodes one step from the frontier, with the best moment of this round.
FOUND = "lake_found"
#: The links of the answer, and those that a summary of hubs leaves out.
ALL_LINKS = "lake_all_links"
COLUMNS = ("node", "depth", "moment", "root", "near", "far")

_SHIFTED = f"""least(j.high, CASE WHEN j.shift IS NULL THEN {LAST} WHEN j.shift = 0 THEN r.moment
  ELSE CAST(greatest(least(CAST(r.moment AS DECIMAL(38, 0)) + j.shift, {LAST}), {FIRST})
  AS BIGINT) END)"""


def _hint(name: str, count: int) -> str:
    """Tells Spark to send some rows to each worker. Then no node is shuffled."""
    return f"/*+ BROADCAST({name}) */" if count <= BROADCAST else ""


def _merged(count: int) -> str:
    """The former nodes, but those that became better. `count`: the rows of `FRONTIER`."""
    return f"""SELECT {_hint("b", count)} {", ".join(f"n.{one}" for one in COLUMNS)} FROM {NODES} n
LEFT JOIN {FRONTIER} b ON b.node = n.node AND b.depth = n.depth WHERE b.node IS NULL
UNION ALL SELECT {", ".join(COLUMNS)} FROM {FRONTIER}"""


@dataclass(frozen=True)
class Way:
    """How steps are followed: `back` or `forth`, and which of them."""

    direction: str = "back"
    #: The greatest number of processes on a path.
    bound: int | None = None
    #: Whether flows that were not observed count.
    possible: bool = True
    #: Contents that more edges touch are hubs: nothing is followed from them. `None`: no rule.
    hubs: int | None = None
    #: Whether the links into hubs are left out, too. `hubs.REPORT` counts them.
    summary: bool = False

    def __post_init__(self) -> None:
        if self.direction not in STEPS:
            raise MisuseError(f"the direction of a lineage is back or forth, not {self.direction}")
        for name, number in (("bound", self.bound), ("number of edges of a hub", self.hubs)):
            if number is not None and number < 0:
                raise MisuseError(f"the {name} is 0 or more, not {number}")
        if self.summary and self.hubs is None:
            raise MisuseError("a summary of hubs needs the number of edges of a hub")

    @property
    def ends(self) -> tuple[str, str]:
        """The columns of a link with the node where a step begins, and where it leads."""
        return ("target", "source") if self.direction == "back" else ("source", "target")


class Rounds:
    """Follows the steps of one question."""

    def __init__(self, engine: Engine, way: Way) -> None:
        self._engine, self.way = engine, way
        self.steps, self.jumps = engine.steps(way.direction)
        #: The nodes that became better in each round.
        self.counts: list[int] = []

    def begin(self, files: Iterable[int]) -> int:
        """Begins at files. Returns their number."""
        keys = list(files)
        count = self._engine.keep(FRONTIER, roots(keys))
        if self.way.hubs is not None:
            hubs.find(self._engine, self.way.hubs, roots(keys))
        self._engine.keep(NODES, f"SELECT * FROM {FRONTIER}")
        return count

    def follow(self, count: int) -> None:
        """Follows the nodes of `FRONTIER`, which `NODES` has already, until none becomes better."""
        while count:
            # This follows the steps. Few nodes are found, beside all those that are known.
            found = self._engine.keep(FOUND, self._found(count))
            count = self._engine.keep(FRONTIER, self._better(found))
            self.counts.append(count)
            self._engine.renew(NODES, _merged(count), len(self.counts))

    def _found(self, count: int) -> str:
        """The nodes one step from the frontier, each with the best moment."""
        near = self._engine.join(FRONTIER, count, self.steps)
        far = self._engine.join(FRONTIER, count, self.jumps)
        depth = "0" if self.way.bound is None else "r.depth + s.crossing"
        return f"""SELECT node, depth, max(moment) AS moment FROM (
  SELECT {near.hint} s.there AS node, CAST({depth} AS INT) AS depth,
    least(s.high, r.moment) AS moment
  FROM {near.text} WHERE s.low <= r.moment AND r.near{self._seen()}
  UNION ALL
  SELECT {far.hint} s.there, r.depth, {_SHIFTED.replace("j.", "s.")}
  FROM {far.text} WHERE s.low <= r.moment AND r.far{self._seen()}) steps
{"" if self.way.bound is None else f"WHERE depth <= {self.way.bound}"}
GROUP BY node, depth"""

    def _seen(self) -> str:
        return "" if self.way.possible else " AND s.certainty = 'seen'"

    def _better(self, count: int) -> str:
        """The rows of `FOUND` that are new, or better than the known ones. `count`: all of them."""
        hub, join = "true", ""
        if self.way.hubs is not None:
            hub, join = "h.node IS NULL", f"LEFT JOIN {hubs.NODES} h ON h.node = f.node"
        known = f"""SELECT {_hint("g", count)} n.node, n.depth FROM {NODES} n JOIN {FOUND} g
  ON g.node = n.node AND g.depth = n.depth AND g.moment <= n.moment"""
        names = "s, k" if count <= BROADCAST else "s"
        return f"""SELECT /*+ BROADCAST({names}) */
  f.node, f.depth, f.moment, false AS root, s.node IS NULL AND {hub} AS near, {hub} AS far
FROM {FOUND} f LEFT JOIN ({known}) k ON k.node = f.node AND k.depth = f.depth
LEFT JOIN lake_forgetful s ON s.node = f.node {join} WHERE k.node IS NULL"""

    def links(self, nodes: str, count: int) -> str:
        """The steps that information can take from nodes."""
        near = self._engine.join(nodes, count, self.steps)
        best = f"""(SELECT node, max(moment) AS best,
  {"max(moment)" if self.way.direction == "back" else "~max(moment)"} AS moment
  FROM {nodes} WHERE far GROUP BY node)"""
        far = self._engine.join(best, count, self.jumps)
        bound = ""
        if self.way.bound is not None:
            bound = f" AND r.depth + s.crossing <= {self.way.bound}"
        return f"""SELECT {near.hint} DISTINCT s.source, s.target, s.flow, s.how, s.certainty,
  s.since, s.until
FROM {near.text} WHERE s.low <= r.moment AND r.near{bound}{self._seen()}
UNION ALL
SELECT {far.hint} s.source, s.target, s.flow, s.how, s.certainty,
  least(s.modified, r.moment) AS since,
  greatest(s.modified, least(r.moment, s.changed)) AS until
FROM {far.text} WHERE s.low <= r.best{self._seen()}"""


def roots(files: Iterable[int]) -> str:
    """The nodes of a question's own files."""
    # A node that no file has makes the list of no files.
    keys = sorted(set(files)) or [-1]
    listed = ", ".join(f"({key})" for key in keys)
    return f"""SELECT CAST(node AS BIGINT) AS node, 0 AS depth, CAST({LAST} AS BIGINT) AS moment,
  true AS root, true AS near, true AS far
FROM (VALUES {listed}) AS given(node) WHERE node >= 0"""


def lineage(engine: Engine, files: Iterable[int], way: Way) -> list[int]:
    """Answers a question: makes `NODES`, `ALL_LINKS`, `LINKS`, and with a rule `hubs.REPORT`.

    Returns the number of nodes that became better in each round.
    """
    asked = Rounds(engine, way)
    asked.follow(asked.begin(files))
    conclude(engine, asked, asked.links(NODES, engine.keep(NODES, f"SELECT * FROM {NODES}")))
    return asked.counts


def conclude(engine: Engine, asked: Rounds, links: str) -> None:
    """Makes the views of an answer from all its links, and the report about hubs."""
    if asked.way.hubs is not None:
        # The report and the answer read them.
        engine.keep("lake_kept_links", links)
        links = "SELECT * FROM lake_kept_links"
    engine.view(ALL_LINKS, links)
    if asked.way.hubs is not None:
        hubs.report(engine, asked.way, asked, ALL_LINKS)
    engine.view(LINKS, f"SELECT * FROM {hubs.left_out(asked.way, ALL_LINKS)} answered")


def answer(links: str = LINKS) -> str:
    """The links as `lineage` in SQL has them."""
    return f"SELECT {', '.join(LINK)} FROM {links}"


#: The links nearest to the question first. The keys decide between links of one moment.
_ORDER = {
    "back": "l.ended_ns DESC, l.started_ns DESC",
    "forth": "l.started_ns, l.ended_ns",
}


def named(links: str, way: Way) -> str:
    """Links in order, with the hosts, and the paths of files or the commands of processes."""
    keys = ("from_process", "from_file", "to_process", "to_file", "flow", "how", "certainty")
    ties = ", ".join(f"l.{key} NULLS LAST" for key in keys)
    return f"""
SELECT l.*, rs.host AS source_host, coalesce(fs.path, ps.command) AS source,
  rt.host AS target_host, coalesce(ft.path, pt.command) AS target
FROM ({links}) l
LEFT JOIN files fs ON fs.file = l.from_file LEFT JOIN processes ps ON ps.process = l.from_process
LEFT JOIN files ft ON ft.file = l.to_file LEFT JOIN processes pt ON pt.process = l.to_process
LEFT JOIN runs rs ON rs.run = coalesce(fs.run, ps.run)
LEFT JOIN runs rt ON rt.run = coalesce(ft.run, pt.run)
ORDER BY {_ORDER[way.direction]}, {ties}"""
