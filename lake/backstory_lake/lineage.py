"""Lineage in SQL: `lineage(files, direction, bound)`, the rules of `backstory of` and `uses`.

With `hubs := N`, nothing is followed from hubs, and `lineage_hubs` reports them: see `hubs`.

Backwards, a node carries the latest moment at which its content can have flowed to the subject.
Forwards, it carries the earliest moment at which the subject's content can be in it. A step exists
if the moment and the step's interval allow information to flow. `flows` has the steps. Each round
replaces the moments that became better, until none does.
"""

from __future__ import annotations

from . import flows, hubs

#: The least and greatest moment.
FIRST, LAST = f"(({flows.FIRST})::BIGINT)", f"{flows.LAST}::BIGINT"

_SHIFT = """CREATE OR REPLACE MACRO lake_shifted(moment, shift) AS
CASE WHEN shift IS NULL THEN {last} WHEN shift = 0 THEN moment ELSE
greatest(least(moment::HUGEINT + shift, {last}::HUGEINT), {first}::HUGEINT)::BIGINT END"""

# The nodes that a question comes to: both macros begin with them. Nothing is followed from hubs.
_REACHED = """
WITH RECURSIVE steps AS ({steps}),
open_steps AS (SELECT * FROM steps WHERE possible OR certainty = 'seen'),
jumps AS MATERIALIZED (
  SELECT * FROM ({jumps}) WHERE possible OR certainty = 'seen'),
hub_nodes AS MATERIALIZED ({hubs}),
reached(node, depth, moment, root) USING KEY (node, depth) AS (
  SELECT file, 0, {last}, true FROM (SELECT DISTINCT unnest(files) AS file)
UNION
  SELECT found.node, found.depth, found.moment, false
  FROM (
    SELECT node, depth, max(moment) AS moment FROM (
      SELECT s.there AS node, least(s.high, r.moment) AS moment,
        CASE WHEN bound IS NULL THEN 0 ELSE r.depth + s.crossing END AS depth
      FROM reached r JOIN open_steps s ON s.here = r.node
      WHERE s.low <= r.moment AND (r.root OR r.node NOT IN (SELECT node FROM lake_forgetful))
        AND r.node NOT IN (SELECT node FROM hub_nodes)
      UNION ALL
      SELECT j.there, least(j.high, lake_shifted(r.moment, j.shift)), r.depth
      FROM reached r JOIN jumps j ON j.here = r.node AND j.low <= r.moment
      WHERE r.node NOT IN (SELECT node FROM hub_nodes))
    WHERE bound IS NULL OR depth <= bound
    GROUP BY node, depth) found
  LEFT JOIN recurring.reached known ON known.node = found.node AND known.depth = found.depth
  WHERE known.node IS NULL OR found.moment > known.moment),
best AS (
  SELECT node, max(moment) AS best,
    CASE direction WHEN 'back' THEN max(moment) ELSE ~max(moment) END AS moment
  FROM reached GROUP BY node)"""

# The links from the nodes that are hubs, or from all others.
_LINKS = """
  SELECT DISTINCT s.source, s.target, s.flow, s.how, s.certainty, s.since, s.until, s.here, s.there
  FROM reached r JOIN open_steps s ON s.here = r.node
  WHERE s.low <= r.moment AND (r.root OR r.node NOT IN (SELECT node FROM lake_forgetful))
    AND r.node {hubs} (SELECT node FROM hub_nodes)
    AND (bound IS NULL OR r.depth + s.crossing <= bound)
  UNION ALL
  SELECT j.source, j.target, j.flow, j.how, j.certainty, least(j.modified, b.moment),
    greatest(j.modified, least(b.moment, j.changed)), j.here, j.there
  FROM best b JOIN jumps j ON j.here = b.node AND j.low <= b.best
  WHERE b.node {hubs} (SELECT node FROM hub_nodes)"""

_LINEAGE = """CREATE OR REPLACE MACRO lineage(files, direction, bound, possible := true,
  hubs := NULL, summary := false) AS TABLE
{reached},
links AS ({links})
SELECT {link}
FROM links WHERE NOT summary OR there NOT IN (SELECT node FROM hub_nodes)
UNION ALL
SELECT error({wrong})::BIGINT, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE {wrong} IS NOT NULL"""

_HUBS = """CREATE OR REPLACE MACRO lineage_hubs(files, direction, bound, possible := true,
  hubs := NULL, summary := false) AS TABLE
{reached},
links AS ({links}),
beyond AS ({beyond}),
report AS ({counted})
SELECT * FROM ({named})
UNION ALL
SELECT error({wrong}), NULL, NULL, NULL, NULL, NULL, NULL WHERE {wrong} IS NOT NULL
ORDER BY edges DESC, path"""

#: How the messages about a wrong question begin.
WRONG = ("the direction of a lineage", "a summary of hubs", "the number of edges of a hub")
_WRONG = f"""CASE WHEN direction NOT IN ('back', 'forth') THEN '{WRONG[0]} is back or forth'
  WHEN summary AND hubs IS NULL THEN '{WRONG[1]} needs the number of edges of a hub: hubs := N'
  WHEN hubs < 0 THEN '{WRONG[2]} is 0 or more' END"""


def _either(texts: dict[str, str]) -> str:
    """The steps in the direction that the question names."""
    return "\nUNION ALL\n".join(
        f"SELECT * FROM ({text}) WHERE direction = '{direction}'"
        for direction, text in texts.items()
    )


#: The view of the steps between runs. All files decide about them, and each question of a
#: connection needs them. So it is a table, which the first question makes.
MET = "lake_jumps"
#: Fills it with one kind of steps after the other: all at once would need the memory of all.
MEET = [
    f"CREATE OR REPLACE TABLE {MET} AS SELECT * FROM ({flows.VIEWS[MET]}) jumps LIMIT 0",
    *(f"INSERT INTO {MET} {jumps}" for jumps in flows.JUMP_KINDS),
]


#: How the names of all these views and macros begin, with that of `history`.
NAMES = ("lake_", "lineage", "history")


def is_needed(sql: str) -> bool:
    """True for a question that may need views or macros of this module, or `history`."""
    return any(name in sql.lower() for name in NAMES)


def needs_jumps(sql: str) -> bool:
    """True for a question that may need the steps between runs."""
    return "lineage" in sql.lower() or MET in sql.lower()


def _macro(text: str, **parts: str) -> str:
    reached = _REACHED.format(
        last=LAST,
        steps=_either(flows.STEPS),
        jumps=_either(flows.JUMPS),
        hubs=hubs.nodes("hubs", "SELECT unnest(files) AS node"),
    )
    return text.format(reached=reached, links=_LINKS.format(hubs="NOT IN"), wrong=_WRONG, **parts)


#: A question that is interrupted between them makes all of them again.
STATEMENTS = [
    _SHIFT.format(first=FIRST, last=LAST),
    *(
        f"CREATE OR REPLACE VIEW {name} AS {text}"
        for name, text in flows.VIEWS.items()
        if name != MET
    ),
    _macro(_LINEAGE, link=", ".join(flows.LINK)),
    _macro(
        _HUBS,
        beyond=_LINKS.format(hubs="IN"),
        counted=hubs.counted(
            "c.hub",
            "SELECT DISTINCT h.node, h.hub, h.edges "
            "FROM hub_nodes h JOIN best b ON b.node = h.node",
            "SELECT here AS node FROM beyond",
            "SELECT there AS node FROM links WHERE summary",
        ),
        named=hubs.named("report", "summary"),
    ),
]
