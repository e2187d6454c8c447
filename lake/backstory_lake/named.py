"""Where runs meet by a name: of a connection, of a connection of ssh, or of a thing.

`crates/query/src/neighbours/by_name.rs` is the definition. The views are in portable SQL, as those
of `flows`, which adds them to the steps between runs. They read `runs`, `processes`, `files` and
`edges`.

A thing has a name that is unique on its machine. So things of two machines never meet. A watched
server and its client meet possibly.
"""

from __future__ import annotations

#: Numbers from here on belong to no process.
UNNUMBERED = 1 << 30
#: Clocks of one boot differ by less than this between runs, in ns.
DRIFT = 10_000_000

#: The end of the name of a connection's direction towards the process that connected.
_REPLY = " (reply)"
# True for an end in the run that ssh started.
_STARTED = f"(path LIKE concat('%/', run) OR path LIKE concat('%/', run, '{_REPLY}'))"

# Connections and things, and the facts about their run. `ahead`: the calendar's lead on the boot.
_NAMED = """
SELECT f.file, f.run, f.kind, f.path, f.version, r.source, r.started_ns, r.machine, r.boot,
  CASE WHEN r.since_boot_ns <> 0 AND r.boot <> '' THEN r.started_ns - r.since_boot_ns END AS ahead
FROM files f JOIN runs r ON r.run = f.run WHERE f.kind IN ('socket', 'resource')"""

# The ns from the clock of the target `t` to that of the source `s`, if both are of one boot.
_SHIFT = """CASE WHEN s.machine = t.machine AND s.boot = t.boot
    AND abs(s.ahead - t.ahead) >= 1000000000 THEN s.ahead - t.ahead ELSE 0 END"""

# The two ends of connections of ssh. The name ends with the id of the run that ssh started. Data
# flows to that run, and replies flow from it.
_SSH_ENDS = f"""
SELECT file, run, machine, boot, ahead, path,
  (path LIKE '%{_REPLY}') <> {_STARTED} AS receives
FROM lake_named WHERE kind = 'socket' AND path LIKE 'ssh:%'"""

# The clocks of two machines differ by an unknown time: then no time restricts the step.
_SSH = f"""
SELECT s.file AS source, t.file AS target, 'seen' AS certainty,
  CASE WHEN s.boot = t.boot AND s.boot <> '' THEN {_SHIFT} END AS shift,
  t.receives AS back, NOT s.receives AS forth
FROM lake_ssh_ends s JOIN lake_ssh_ends t ON t.path = s.path AND t.run <> s.run
WHERE t.receives OR NOT s.receives"""

# The processes that used a connection to a watched server.
_USERS = """
SELECT DISTINCT n.file, p.process, p.pid, p.started_ns, p.ended_ns
FROM lake_named n JOIN edges e ON e.file = n.file JOIN processes p ON p.process = e.process
WHERE n.kind = 'socket'
  AND n.path IN (SELECT path FROM lake_named WHERE kind = 'socket' AND source IS NOT NULL)"""

# A connection in the run that watched the server, `s`, and in that of a client, `t`. A source that
# knows the process of a client joins only that one. All processes of the client's run share its
# entity, so the step is possible only: `client_sockets.rs` joins the processes themselves.
_WATCHED = f"""
SELECT s.file AS source, t.file AS target, {_SHIFT} AS shift,
  max(CASE WHEN w.pid < {UNNUMBERED} THEN 1 ELSE 0 END) AS knows,
  max(CASE WHEN w.started_ns - {DRIFT} <= c.ended_ns + {_SHIFT}
    AND c.started_ns + {_SHIFT} <= w.ended_ns + {DRIFT}
    THEN CASE WHEN w.pid = c.pid THEN 2 ELSE 1 END ELSE 0 END) AS agreement
FROM lake_named s JOIN lake_named t ON t.path = s.path AND t.boot = s.boot AND t.run <> s.run
  JOIN lake_users w ON w.file = s.file JOIN lake_users c ON c.file = t.file
WHERE s.kind = 'socket' AND t.kind = 'socket' AND s.source IS NOT NULL AND t.source IS NULL
  AND s.boot <> '' AND s.path NOT LIKE 'ssh:%'
GROUP BY s.file, t.file, s.machine, t.machine, s.boot, t.boot, s.ahead, t.ahead"""

_CONNECTED = """
SELECT source, target, shift, 'possible' AS certainty
FROM lake_watched WHERE agreement = CASE WHEN knows = 1 THEN 2 ELSE agreement END
  AND agreement > 0"""

# A thing in its runs, in their order.
_THINGS = """
SELECT *, max(CASE WHEN version > 0 THEN place END) OVER (PARTITION BY machine, path ORDER BY place
  RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS former
FROM (
  SELECT *, dense_rank() OVER (PARTITION BY machine, path ORDER BY started_ns, run) AS place
  FROM lake_named WHERE kind = 'resource') placed"""

# The version from before a run is the last one of the newest older run that changed the thing.
_FORMER = f"""
SELECT source, target, shift FROM (
  SELECT s.file AS source, t.file AS target, {_SHIFT} AS shift,
    row_number() OVER (PARTITION BY t.file ORDER BY s.version DESC) AS turn
  FROM lake_things t JOIN lake_things s
    ON s.machine = t.machine AND s.path = t.path AND s.place = t.former AND s.version > 0
  WHERE t.version = 0) versions
WHERE turn = 1"""

#: The views by name, each after those that it reads.
VIEWS = {
    "lake_named": _NAMED,
    "lake_ssh_ends": _SSH_ENDS,
    "lake_ssh": _SSH,
    "lake_users": _USERS,
    "lake_watched": _WATCHED,
    "lake_connected": _CONNECTED,
    "lake_things": _THINGS,
    "lake_former": _FORMER,
}

#: Steps between runs: the nodes, the certainty, the clocks' difference (NULL: no time restricts the
#: step), and in which directions the step exists.
JUMPS = """
SELECT source, target, certainty, shift, back, forth FROM lake_ssh
UNION ALL
SELECT source, target, certainty, shift, true, true FROM lake_connected
UNION ALL
SELECT target, source, certainty, -shift, true, true FROM lake_connected
UNION ALL
SELECT source, target, 'seen', shift, true, true FROM lake_former"""
