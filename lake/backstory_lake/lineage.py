"""Lineage in SQL: `lineage(files, direction, bound)`, the rules of `backstory of` and `uses`.

Backwards, a node carries the latest moment at which its content can have flowed to the subject.
Forwards, it carries the earliest moment at which the subject's content can be in it. A step exists
if the moment and the step's interval allow information to flow. `flows` has the steps. Each round
replaces the moments that became better, until none does.
"""

from __future__ import annotations

from . import flows

#: The least and greatest moment.
FIRST, LAST = f"(({flows.FIRST})::BIGINT)", f"{flows.LAST}::BIGINT"

_SHIFT = """CREATE MACRO lake_shifted(moment, shift) AS CASE WHEN shift IS NULL THEN {last}
WHEN shift = 0 THEN moment ELSE
greatest(least(moment::HUGEINT + shift, {last}::HUGEINT), {first}::HUGEINT)::BIGINT END"""

_LINEAGE = """CREATE MACRO lineage(files, direction, bound, possible := true) AS TABLE
WITH RECURSIVE steps AS ({steps}),
open_steps AS (SELECT * FROM steps WHERE possible OR certainty = 'seen'),
jumps AS MATERIALIZED (
  SELECT * FROM ({jumps}) WHERE possible OR certainty = 'seen'),
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
      UNION ALL
      SELECT j.there, least(j.high, lake_shifted(r.moment, j.shift)), r.depth
      FROM reached r JOIN jumps j ON j.here = r.node AND j.low <= r.moment)
    WHERE bound IS NULL OR depth <= bound
    GROUP BY node, depth) found
  LEFT JOIN recurring.reached known ON known.node = found.node AND known.depth = found.depth
  WHERE known.node IS NULL OR found.moment > known.moment),
best AS (
  SELECT node, max(moment) AS best,
    CASE direction WHEN 'back' THEN max(moment) ELSE ~max(moment) END AS moment
  FROM reached GROUP BY node),
links AS (
  SELECT DISTINCT s.source, s.target, s.flow, s.how, s.certainty, s.since, s.until
  FROM reached r JOIN open_steps s ON s.here = r.node
  WHERE s.low <= r.moment AND (r.root OR r.node NOT IN (SELECT node FROM lake_forgetful))
    AND (bound IS NULL OR r.depth + s.crossing <= bound)
  UNION ALL
  SELECT j.source, j.target, j.flow, j.how, j.certainty, least(j.modified, b.moment),
    greatest(j.modified, least(b.moment, j.changed))
  FROM best b JOIN jumps j ON j.here = b.node AND j.low <= b.best)
SELECT {link}
FROM links
UNION ALL
SELECT error('the direction of a lineage is back or forth')::BIGINT, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL
WHERE direction NOT IN ('back', 'forth')"""


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


def needs_jumps(sql: str) -> bool:
    """True for a question that may need the steps between runs."""
    return "lineage" in sql.lower() or MET in sql.lower()


STATEMENTS = [
    _SHIFT.format(first=FIRST, last=LAST),
    *(f"CREATE VIEW {name} AS {text}" for name, text in flows.VIEWS.items() if name != MET),
    _LINEAGE.format(
        last=LAST,
        link=", ".join(flows.LINK),
        steps=_either(flows.STEPS),
        jumps=_either(flows.JUMPS),
    ),
]
