"""Lineage in SQL: `lineage(files, direction, bound)`, the rules of `backstory of` and `uses`.

Backwards, a node carries the latest moment at which its content can have flowed to the subject.
Forwards, it carries the earliest moment at which the subject's content can be in it. A step exists
if the moment and the step's interval allow information to flow. `crates/query/src/neighbours.rs` is
the definition. Each round replaces the moments that became better, until none does.

The nodes of both kinds have one number: a key times 2, and 1 more for a file.
"""

from __future__ import annotations

#: The least and greatest moment.
FIRST, LAST = "((-9223372036854775808)::BIGINT)", "9223372036854775807::BIGINT"

_SHIFT = """CREATE MACRO lake_shifted(moment, shift) AS CASE WHEN shift = 0 THEN moment ELSE
greatest(least(moment::HUGEINT + shift, {last}::HUGEINT), {first}::HUGEINT)::BIGINT END"""

# Versions that their own run made: the rule of `is_made`.
_MADE = """CREATE VIEW lake_made AS
SELECT DISTINCT file FROM (
  SELECT file FROM edges WHERE how IN ('write', 'rename', 'make')
  UNION ALL
  SELECT d.file FROM derivations d JOIN files f USING (file) WHERE f.version > 0)"""

# Versions with an identity, the facts about their run, and whether their run made them.
_VERSIONS = """CREATE VIEW lake_versions AS
SELECT f.file, f.run, f.device, f.inode, f.size, f.modified_ns, f.changed_ns, f.born_ns, f.digest,
  m.file IS NOT NULL AS made, r.undone, r.started_ns, r.machine, r.boot,
  CASE WHEN r.since_boot_ns <> 0 AND r.boot <> '' THEN r.started_ns - r.since_boot_ns END AS ahead
FROM files f JOIN runs r USING (run) LEFT JOIN lake_made m USING (file)
WHERE f.modified_ns IS NOT NULL"""

# The ns between the clocks of two runs of one boot, if the clock was set in between. Machines that
# were cloned have one boot id, and clocks of their own.
_CLOCKS = """CREATE MACRO lake_clocks(one_boot, ahead, other_ahead) AS
CASE WHEN one_boot AND abs(other_ahead - ahead) >= 1000000000
THEN other_ahead - ahead ELSE 0 END"""

# A version that no process of its run made, and the run that made it: by identity, and by content.
# Cloned disks give different files one identity: then their digests say so.
_SAME = """CREATE VIEW lake_same AS
SELECT c.file AS copy, m.file AS maker, m.undone,
  lake_clocks(c.boot = m.boot AND c.machine = m.machine, c.ahead, m.ahead) AS shift, c.changed_ns,
  m.changed_ns AS maker_changed_ns, c.modified_ns
FROM lake_versions c JOIN lake_versions m USING (device, inode, size, modified_ns)
WHERE NOT c.made AND m.made AND c.run <> m.run
  AND (c.born_ns = m.born_ns OR c.born_ns = 0 OR m.born_ns = 0)
  AND (c.machine = m.machine OR c.digest = m.digest OR c.digest IS NULL OR m.digest IS NULL)"""

_ALIKE = """CREATE VIEW lake_alike AS
SELECT copy, one.file AS maker, false AS undone, one.shift, one.changed_ns, one.maker_changed_ns,
  one.modified_ns, one.maker_modified_ns
FROM (
  SELECT c.file AS copy, arg_max(
    {'file': m.file,
      'shift': lake_clocks(c.boot = m.boot AND c.machine = m.machine, c.ahead, m.ahead),
      'changed_ns': c.changed_ns, 'maker_changed_ns': m.changed_ns,
      'modified_ns': c.modified_ns, 'maker_modified_ns': m.modified_ns},
    (m.modified_ns, m.inode, m.started_ns, m.run, m.file)) AS one
  FROM lake_versions c JOIN lake_versions m USING (digest)
  WHERE NOT c.made AND m.made AND NOT m.undone AND c.run <> m.run AND c.size >= 64
    AND m.modified_ns <= c.modified_ns
    AND NOT (c.device = m.device AND c.inode = m.inode AND c.size = m.size
      AND c.modified_ns = m.modified_ns
      AND (c.born_ns = m.born_ns OR c.born_ns = 0 OR m.born_ns = 0))
    AND NOT EXISTS (SELECT 1 FROM lake_same s WHERE s.copy = c.file AND NOT s.undone)
  GROUP BY c.file)"""

# What passes nothing on: `forgets` of crates/graph/src/lineage.rs.
_FORGETFUL = """CREATE VIEW lake_forgetful AS
SELECT file::UBIGINT * 2 + 1 AS node FROM files WHERE kind = 'device' AND (
  path IN ('/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom', '/dev/kmsg',
    '/dev/console', '/dev/ptmx', '/dev/pts/ptmx', '/dev/tty')
  OR starts_with(path, '/dev/pts/') OR starts_with(path, '/dev/tty')
  OR starts_with(path, '/proc/self/') OR starts_with(path, '/proc/thread-self/'))"""

# The steps inside runs, as information flows: from `source` to `target`, from `since` to `until`.
# `back` and `forth` count the processes that a step in this direction enters.
_FLOWS = """CREATE VIEW lake_flows AS
SELECT process::UBIGINT * 2 AS source, file::UBIGINT * 2 + 1 AS target, started_ns AS since,
  ended_ns AS until, 'generated' AS flow, how, certainty, 1 AS back, 0 AS forth
FROM edges WHERE how IN ('write', 'rename', 'make')
UNION ALL
SELECT file::UBIGINT * 2 + 1, process::UBIGINT * 2, started_ns, ended_ns, 'used', how, certainty,
  0, 1
FROM edges WHERE how IN ('read', 'exec')
UNION ALL
SELECT origin::UBIGINT * 2 + 1, file::UBIGINT * 2 + 1, time_ns, time_ns, 'derived', NULL, 'seen',
  1, 1
FROM derivations
UNION ALL
SELECT origin::UBIGINT * 2, process::UBIGINT * 2, time_ns, time_ns, 'informed', how, 'seen', 1, 1
FROM informs WHERE how IN ('fork', 'exec')"""

# Steps between runs. No moment restricts them.
_JUMPS = """CREATE VIEW lake_jumps AS
SELECT maker::UBIGINT * 2 + 1 AS source, copy::UBIGINT * 2 + 1 AS target, 'same' AS flow,
  NULL AS how, shift, undone, modified_ns AS copy_modified_ns, changed_ns AS copy_changed_ns,
  modified_ns AS maker_modified_ns, maker_changed_ns
FROM lake_same
UNION ALL
SELECT maker::UBIGINT * 2 + 1, copy::UBIGINT * 2 + 1, 'same', 'content', shift, undone,
  modified_ns, changed_ns, maker_modified_ns, maker_changed_ns
FROM lake_alike"""

# Forwards, all moments are complements (`~`), which reverses their order. So in both directions the
# greatest moment of a node is the best, and a step of `low` to `high` is open from `low` on. An
# informing process matters whenever it informed: backwards, nothing bounds that step from below.
_LINEAGE = """CREATE MACRO lineage(files, direction, bound, possible := true) AS TABLE
WITH RECURSIVE steps AS (
  SELECT target AS here, source AS there, back AS crossing, until AS high,
    CASE flow WHEN 'informed' THEN {first} ELSE since END AS low, *
  FROM lake_flows WHERE direction = 'back'
  UNION ALL
  SELECT source, target, forth, ~since, ~until, * FROM lake_flows WHERE direction = 'forth'),
open_steps AS (SELECT * FROM steps WHERE possible OR certainty = 'seen'),
jumps AS MATERIALIZED (
  SELECT target AS here, source AS there, copy_modified_ns AS modified,
    copy_changed_ns AS changed, *
  FROM lake_jumps WHERE direction = 'back' AND NOT undone
  UNION ALL
  SELECT source, target, maker_modified_ns, maker_changed_ns, *
  FROM lake_jumps WHERE direction = 'forth'),
reached(node, depth, moment, root) USING KEY (node, depth) AS (
  SELECT file::UBIGINT * 2 + 1, 0, {last}, true FROM (SELECT DISTINCT unnest(files) AS file)
UNION
  SELECT found.node, found.depth, found.moment, false
  FROM (
    SELECT node, depth, max(moment) AS moment FROM (
      SELECT s.there AS node, least(s.high, r.moment) AS moment,
        CASE WHEN bound IS NULL THEN 0 ELSE r.depth + s.crossing END AS depth
      FROM reached r JOIN open_steps s ON s.here = r.node
      WHERE s.low <= r.moment AND (r.root OR r.node NOT IN (SELECT node FROM lake_forgetful))
      UNION ALL
      SELECT j.there, lake_shifted(r.moment, j.shift), r.depth
      FROM reached r JOIN jumps j ON j.here = r.node)
    WHERE bound IS NULL OR depth <= bound
    GROUP BY node, depth) found
  LEFT JOIN recurring.reached known ON known.node = found.node AND known.depth = found.depth
  WHERE known.node IS NULL OR found.moment > known.moment),
best AS (
  SELECT node, CASE direction WHEN 'back' THEN max(moment) ELSE ~max(moment) END AS moment
  FROM reached GROUP BY node),
links AS (
  SELECT DISTINCT s.source, s.target, s.flow, s.how, s.certainty, s.since, s.until
  FROM reached r JOIN open_steps s ON s.here = r.node
  WHERE s.low <= r.moment AND (r.root OR r.node NOT IN (SELECT node FROM lake_forgetful))
    AND (bound IS NULL OR r.depth + s.crossing <= bound)
  UNION ALL
  SELECT j.source, j.target, j.flow, j.how, 'seen', least(j.modified, b.moment),
    greatest(j.modified, least(b.moment, j.changed))
  FROM best b JOIN jumps j ON j.here = b.node)
SELECT CASE WHEN source % 2 = 0 THEN (source // 2)::BIGINT END AS from_process,
  CASE WHEN source % 2 = 1 THEN (source // 2)::BIGINT END AS from_file,
  CASE WHEN target % 2 = 0 THEN (target // 2)::BIGINT END AS to_process,
  CASE WHEN target % 2 = 1 THEN (target // 2)::BIGINT END AS to_file,
  flow, how, certainty, since AS started_ns, until AS ended_ns
FROM links
UNION ALL
SELECT error('the direction of a lineage is back or forth')::BIGINT, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL
WHERE direction NOT IN ('back', 'forth')"""

STATEMENTS = [
    _SHIFT.format(first=FIRST, last=LAST),
    _MADE,
    _VERSIONS,
    _CLOCKS,
    _SAME,
    _ALIKE,
    _FORGETFUL,
    _FLOWS,
    _JUMPS,
    _LINEAGE.format(first=FIRST, last=LAST),
]
