"""The history of a digest: where a content was, from when until when, and which runs wrote it.

A row is a path on a machine. Moments are those of the machines' clocks: the first and the last time
at which a recorded process touched the content there. `written_by` is the first run that wrote it
there, or NULL if no recorded run did. `flows` says which versions a run wrote.
"""

from __future__ import annotations

from collections.abc import Callable

_HISTORY = """
WITH touched AS (
  SELECT f.run, f.path, r.host, r.machine, r.command,
    min(coalesce(e.started_ns, r.started_ns)) AS first_ns,
    max(coalesce(e.ended_ns, e.started_ns, r.started_ns)) AS last_ns,
    max(CASE WHEN f.file IN (SELECT file FROM lake_makes) THEN 1 ELSE 0 END) AS wrote
  FROM files f JOIN runs r ON r.run = f.run LEFT JOIN edges e ON e.file = f.file
  WHERE f.digest = {digest}
  GROUP BY f.run, f.path, r.host, r.machine, r.command),
turns AS (
  SELECT *, row_number() OVER (
    PARTITION BY host, machine, path, wrote ORDER BY first_ns, run) AS turn
  FROM touched)
SELECT host, machine, path, min(first_ns) AS first_ns, max(last_ns) AS last_ns, count(*) AS runs,
  CAST(sum(wrote) AS BIGINT) AS writers,
  min(CASE WHEN wrote = 1 AND turn = 1 THEN run END) AS written_by,
  min(CASE WHEN wrote = 1 AND turn = 1 THEN command END) AS written_command
FROM turns GROUP BY host, machine, path"""

#: `history(digest)` in SQL.
MACRO = f"CREATE OR REPLACE MACRO history(content) AS TABLE {_HISTORY.format(digest='content')}"


def history(digest: str, quoted: Callable[[str], str]) -> str:
    """The question about a digest. `quoted` makes a text of the engine's SQL."""
    return f"SELECT * FROM ({_HISTORY.format(digest=quoted(digest))}) h ORDER BY first_ns, path"
