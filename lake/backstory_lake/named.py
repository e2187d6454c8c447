"""Where runs meet by a name: of a connection, of a connection of ssh, or of a thing.

`crates/query/src/neighbours` is the definition: `by_name.rs`, `by_connection.rs` and
`client_sockets.rs`. The views are in portable SQL, as those of `flows`, which adds them to the
steps between runs. They read `runs`, `processes`, `files`, `edges`, `informs` and `connections`.

A thing has a name that is unique on its machine. So things of two machines never meet. Stores with
one boot id may be of one machine or of two clones: their connections are possibly the same.
"""

from __future__ import annotations

#: The least and greatest moment.
FIRST, LAST = -(1 << 63), (1 << 63) - 1
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

# A connection in the run that watched the server, `s`, and in that of a client, `t`, without a
# port. A source that knows the process of a client joins only that one. All processes of the
# client's run share its entity, so the step is possible only.
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

# Views are not kept: one that names another view twice computes it twice.
_WAYS = "CROSS JOIN (VALUES (0), (1)) AS ways(way)"

_CONNECTED = f"""
SELECT w.source, w.target, w.shift, 'possible' AS certainty
FROM lake_watched w LEFT JOIN (
  SELECT DISTINCT CASE way WHEN 0 THEN server ELSE sent END AS file FROM lake_sessions {_WAYS}) n
  ON n.file = w.source
WHERE w.agreement = CASE WHEN w.knows = 1 THEN 2 ELSE w.agreement END AND w.agreement > 0
  AND n.file IS NULL"""

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

#: The most ns until both ends of a connection have it, and until the server of the fastest one has.
MINUTE, SECOND = 60_000_000_000, 1_000_000_000

# The ends of connections, and the facts about their run.
_ENDS = """
SELECT c.process, c.file, c.reply, c.role, c.run, c.own, c.other, c.scope, c.network, r.machine,
  r.boot, r.source IS NOT NULL AS watched, CAST(c.began_ns AS DECIMAL(38, 0)) AS began,
  CASE WHEN r.since_boot_ns <> 0 AND r.boot <> '' THEN r.started_ns - r.since_boot_ns END AS ahead
FROM connections c JOIN runs r ON r.run = c.run"""

# The entities of connections that something was written to, and that something was read from.
_CARRIED = """
SELECT e.file, max(CASE e.flow WHEN 'generated' THEN 1 ELSE 0 END) AS generated,
  max(CASE e.flow WHEN 'used' THEN 1 ELSE 0 END) AS used
FROM edges e WHERE e.file IN (SELECT file FROM connections UNION SELECT reply FROM connections)
GROUP BY e.file"""

# True for a client `t` and a server `s` whose addresses agree, and which can have one network.
_AGREE = """s.own = t.other AND s.other = t.own AND s.run <> t.run
  AND t.role = 'client' AND s.role = 'server' AND (t.scope <> 'loopback'
    OR t.boot = s.boot AND t.boot <> '' AND (t.network = s.network OR 0 IN (t.network, s.network)))
"""

# How sure the address is. `shift` leads from the server's clock to the client's if both are of one
# boot.
_BETWEEN = f"""t.boot = s.boot AND t.boot <> '' AS one_boot, -({_SHIFT}) AS shift,
    CASE WHEN t.scope = 'global' OR t.boot = s.boot AND t.boot <> '' AND t.machine = s.machine
      THEN 'seen' ELSE 'possible' END AS certainty"""

# A client `t` and a server `s` that have one connection.
_PAIRS = f"""
SELECT *, min(server_began - client_began) OVER (PARTITION BY client_run, server_run) AS fastest
FROM (
  SELECT t.file AS client, t.reply AS got, s.file AS server, s.reply AS sent, t.run AS client_run,
    s.run AS server_run, t.began AS client_began, s.began AS server_began, {_BETWEEN}
  FROM lake_ends t JOIN lake_ends s ON {_AGREE}
  WHERE NOT t.watched AND NOT s.watched) ends
WHERE server_began + shift - client_began
  BETWEEN CASE WHEN one_boot THEN -{DRIFT} ELSE -{MINUTE} END AND {MINUTE}"""

# A client `t` and the session `s` of a watched server that can have one connection. The session
# existed at `began`, and the client's process had not ended before. A port is used again, so the
# newest connection before the session counts. `slack`: how far the two clocks can differ.
_SESSIONS = f"""
SELECT *, count(*) OVER (PARTITION BY server) AS clients
FROM (
  SELECT *, max(client_began) OVER (PARTITION BY server) AS newest
  FROM (
    SELECT *, CASE WHEN one_boot THEN {DRIFT} ELSE {MINUTE} END AS slack
    FROM (
      SELECT t.process, p.pid, t.file AS client, t.reply AS got, s.file AS server,
        s.reply AS sent, t.began AS client_began, s.began AS server_began,
        CAST(p.ended_ns AS DECIMAL(38, 0)) AS ended, {_BETWEEN}
      FROM lake_ends t JOIN lake_ends s ON {_AGREE}
        JOIN processes p ON p.process = t.process
      WHERE NOT t.watched AND s.watched) ends
  ) clocks
  WHERE client_began <= server_began + shift + slack AND ended + slack >= server_began + shift
) candidates
WHERE client_began + slack >= newest"""

# A session has a client for sure if no other process can have sent its statements. These can have:
# processes that used the client's connections to the address, and those that can have inherited
# one. The watch must have seen no other process with the socket, either.
_SERVED = f"""
WITH sessions AS (SELECT * FROM lake_sessions),
others AS (
  SELECT n.server, n.client FROM sessions n JOIN edges e ON e.file = n.client
  WHERE e.process <> n.process
  UNION
  SELECT n.server, n.client FROM sessions n JOIN edges e ON e.file = n.got
  WHERE e.process <> n.process
  UNION
  SELECT n.server, n.client FROM sessions n JOIN informs i ON i.origin = n.process
  WHERE i.how IN ('fork', 'exec') AND i.time_ns >= n.client_began AND i.process <> n.process
  UNION
  SELECT n.server, n.client FROM sessions n JOIN lake_users w ON w.file = n.server
  WHERE w.pid < {UNNUMBERED} AND w.pid <> n.pid)
SELECT n.client, n.got, n.server, n.sent, n.one_boot, n.shift, CASE
  WHEN n.certainty = 'seen' AND n.clients = 1 AND o.server IS NULL
    AND n.server_began + n.shift - n.client_began <= {MINUTE}
    THEN 'seen' ELSE 'possible' END AS certainty
FROM sessions n LEFT JOIN others o ON o.server = n.server AND o.client = n.client"""

# As `lake_crossed`. Of two boots, the clocks differ by less than a minute.
_SERVING = f"""
SELECT CASE way WHEN 0 THEN client ELSE sent END AS source,
  CASE way WHEN 0 THEN server ELSE got END AS target, certainty,
  CAST(CASE WHEN NOT one_boot THEN {MINUTE} WHEN way = 0 THEN shift ELSE -shift END AS BIGINT)
    AS shift
FROM lake_served {_WAYS} WHERE way = 0 OR sent IS NOT NULL"""

# Requests arrive at the server, and replies at the client.
_CROSSED = f"""
SELECT client AS source, server AS target, certainty, CAST(server_began AS BIGINT) AS opened,
  CAST(CASE WHEN one_boot THEN shift ELSE {SECOND} - fastest END AS BIGINT) AS shift
FROM lake_pairs
UNION ALL
SELECT sent, got, certainty, CAST(client_began AS BIGINT),
  CAST(CASE WHEN one_boot THEN -shift ELSE fastest END AS BIGINT)
FROM lake_pairs"""

_CARRYING = """
SELECT c.*, coalesce(s.generated, 0) = 1 AS back, coalesce(t.used, 0) = 1 AS forth
FROM lake_crossed c LEFT JOIN lake_carried s ON s.file = c.source
  LEFT JOIN lake_carried t ON t.file = c.target"""

#: The views by name, each after those that it reads.
VIEWS = {
    "lake_named": _NAMED,
    "lake_ssh_ends": _SSH_ENDS,
    "lake_ssh": _SSH,
    "lake_users": _USERS,
    "lake_watched": _WATCHED,
    "lake_ends": _ENDS,
    "lake_sessions": _SESSIONS,
    "lake_connected": _CONNECTED,
    "lake_served": _SERVED,
    "lake_serving": _SERVING,
    "lake_things": _THINGS,
    "lake_former": _FORMER,
    "lake_carried": _CARRIED,
    "lake_pairs": _PAIRS,
    "lake_crossed": _CROSSED,
    "lake_carrying": _CARRYING,
}

# The least moment: nothing is too early.
_ALWAYS = f"CAST({FIRST} AS BIGINT)"

#: Steps between runs, one kind after the other. `shift` is the clocks' difference: NULL if no time
#: restricts the step. From `opened` on, the target can have got anything. `back` and `forth`: the
#: directions in which the step exists.
JUMPS = (
    f"SELECT source, target, certainty, shift, {_ALWAYS} AS opened, back, forth FROM lake_ssh",
    f"""SELECT CASE way WHEN 0 THEN source ELSE target END AS source,
  CASE way WHEN 0 THEN target ELSE source END AS target, certainty,
  CASE way WHEN 0 THEN shift ELSE -shift END AS shift, {_ALWAYS} AS opened, true AS back,
  true AS forth
FROM lake_connected {_WAYS}""",
    f"""SELECT source, target, 'seen' AS certainty, shift, {_ALWAYS} AS opened, true AS back,
  true AS forth
FROM lake_former""",
    "SELECT source, target, certainty, shift, opened, back, forth FROM lake_carrying",
    f"""SELECT source, target, certainty, shift, {_ALWAYS} AS opened, true AS back, true AS forth
FROM lake_serving""",
)
