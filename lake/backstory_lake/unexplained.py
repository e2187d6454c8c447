"""Versions that no recorded run can explain, for `backstory hunt --lake`.

The definition is `crates/hunt/src/unexplained.rs`. There, a run is earlier than another if the
store got it before. In a lake, it is earlier if it ended before. Paths of two machines are two
files. A content explains a version wherever it was made. Another name of an output is compared if
it needs no quotes in a shell.
"""

from __future__ import annotations

from .flows import IDENTITY

#: The keys of these versions, of the runs that `hunt_runs` has as wanted.
UNEXPLAINED = f"""
WITH found AS (
  SELECT t.file, t.path, t.device, t.inode, t.size, t.modified_ns, t.born_ns, t.digest,
    r.machine, r.run, r.started_ns, r.ended_ns
  FROM hunt_files_table t JOIN hunt_runs r ON r.number = t.number AND r.shipment = t.shipment
  WHERE t.kind = 'file' AND t.version = 0 AND t.modified_ns IS NOT NULL),
made AS (
  SELECT f.path, f.aliases, f.device, f.inode, f.size, f.modified_ns, f.born_ns,
    r.machine, r.run, r.started_ns, r.ended_ns
  FROM files f JOIN hunt_runs r ON r.run = f.run AND NOT r.forgotten
  WHERE f.kind = 'file' AND f.version > 0),
outputs AS (
  SELECT * EXCLUDE (aliases) FROM made
  UNION ALL
  SELECT * EXCLUDE (aliases) REPLACE (unnest(string_split(aliases, ' ')) AS path)
  FROM made WHERE aliases <> ''),
other AS (
  SELECT c.file, bool_or(coalesce({IDENTITY}, false)
    OR c.modified_ns BETWEEN m.started_ns AND m.ended_ns) AS explained
  FROM found c JOIN outputs m ON m.machine = c.machine AND m.path = c.path
    AND (m.ended_ns, m.started_ns, m.run) < (c.ended_ns, c.started_ns, c.run)
  GROUP BY c.file),
left_over AS (
  SELECT c.* FROM found c JOIN other o ON o.file = c.file WHERE NOT o.explained)
SELECT file FROM left_over
EXCEPT
SELECT c.file FROM left_over c JOIN lake_versions m ON {IDENTITY}
WHERE m.made AND (c.machine = m.machine OR c.digest = m.digest)
EXCEPT
SELECT c.file FROM left_over c JOIN lake_versions m ON m.digest = c.digest
WHERE m.made AND m.run <> c.run AND (m.machine <> c.machine OR m.started_ns <= c.ended_ns)"""
