"""How information flows through a lake: the views that lineage follows, in portable SQL.

DuckDB (`lineage`) and Spark (the package `backstory-spark`) execute the same texts over the views
`runs`, `files`, `edges`, `derivations`, `informs` and those of `named`. The definition is
`crates/query/src/neighbours.rs`. A node is the key of a file, or the complement (`~`) of the key of
a process.
"""

from __future__ import annotations

from . import named
from .named import FIRST, LAST

#: Nodes of a frontier that each worker of Spark gets as a whole.
BROADCAST = 1_000_000

#: ns by which the time stamp of a change can be before the change: `CLOCK_GRANULARITY` of the crate
#: `backstory-files`.
CLOCK_GRANULARITY = 10_000_000

# Versions that their own run made: the rule of `is_made`.
_MAKES = f"""
SELECT file FROM edges WHERE how IN ('write', 'rename', 'make') AND certainty = 'seen'
UNION ALL
SELECT e.file FROM edges e JOIN files f ON f.file = e.file JOIN runs r ON r.run = f.run
WHERE e.how IN ('write', 'rename', 'make') AND e.certainty <> 'seen'
  AND (f.changed_ns IS NULL OR f.changed_ns >= r.started_ns - {CLOCK_GRANULARITY})
UNION ALL
SELECT d.file FROM derivations d JOIN files f ON f.file = d.file WHERE f.version > 0"""
_MADE = "SELECT DISTINCT file FROM lake_makes"

# Versions with an identity, the facts about their run, and whether their run made them.
_VERSIONS = """
SELECT f.file, f.run, f.device, f.inode, f.size, f.modified_ns, f.changed_ns, f.born_ns, f.digest,
  m.file IS NOT NULL AS made, r.undone, r.started_ns, r.machine, r.boot,
  CASE WHEN r.since_boot_ns <> 0 AND r.boot <> '' THEN r.started_ns - r.since_boot_ns END AS ahead
FROM files f JOIN runs r ON r.run = f.run LEFT JOIN lake_made m ON m.file = f.file
WHERE f.modified_ns IS NOT NULL"""

# The ns between the clocks of two runs of one boot, if the clock was set in between. Machines that
# were cloned have one boot id, and clocks of their own.
_CLOCKS = """CASE WHEN c.boot = m.boot AND c.machine = m.machine
    AND abs(m.ahead - c.ahead) >= 1000000000 THEN m.ahead - c.ahead ELSE 0 END AS shift"""

#: Two versions `c` and `m` with one identity.
IDENTITY = """c.device = m.device AND c.inode = m.inode AND c.size = m.size
    AND c.modified_ns = m.modified_ns
    AND (c.born_ns = m.born_ns OR c.born_ns = 0 OR m.born_ns = 0)"""

# A version that no process of its run made, and the run that made it: by identity, and by content.
# Cloned disks give different files one identity: then their digests say so.
_SAME = f"""
SELECT c.file AS copy, m.file AS maker, m.undone, {_CLOCKS}, c.changed_ns,
  m.changed_ns AS maker_changed_ns, c.modified_ns
FROM lake_versions c JOIN lake_versions m ON {IDENTITY}
WHERE NOT c.made AND m.made AND c.run <> m.run
  AND (c.machine = m.machine OR c.digest = m.digest OR c.digest IS NULL OR m.digest IS NULL)"""

_ALIKE = f"""
SELECT copy, maker, false AS undone, shift, changed_ns, maker_changed_ns, modified_ns,
  maker_modified_ns
FROM (
  SELECT c.file AS copy, m.file AS maker, {_CLOCKS}, c.changed_ns,
    m.changed_ns AS maker_changed_ns, c.modified_ns, m.modified_ns AS maker_modified_ns,
    row_number() OVER (PARTITION BY c.file ORDER BY m.modified_ns DESC, m.inode DESC,
      m.started_ns DESC, m.run DESC, m.file DESC) AS place
  FROM lake_versions c JOIN lake_versions m ON m.digest = c.digest
  WHERE NOT c.made AND m.made AND NOT m.undone AND c.run <> m.run AND c.size >= 64
    AND m.modified_ns <= c.modified_ns AND NOT ({IDENTITY})
    AND NOT EXISTS (SELECT 1 FROM lake_same s WHERE s.copy = c.file AND NOT s.undone)) alike
WHERE place = 1"""

# The content of each file: see `hubs`.
_CONTENTS = """
SELECT f.file AS node, CASE
  WHEN f.digest IS NOT NULL AND f.size >= 64 THEN f.digest
  WHEN f.modified_ns IS NOT NULL THEN concat(coalesce(r.machine, ''), ' ', coalesce(f.device, 0),
    ' ', coalesce(f.inode, 0), ' ', coalesce(f.size, 0), ' ', f.modified_ns)
  ELSE concat(coalesce(r.machine, ''), ' ', f.kind, ' ', f.path) END AS hub
FROM files f JOIN runs r ON r.run = f.run"""

#: Devices that pass nothing on: `FORGETFUL` of crates/graph/src/lineage.rs.
FORGETFUL = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/kmsg",
    "/dev/console",
    "/dev/ptmx",
    "/dev/pts/ptmx",
    "/dev/tty",
)

#: Beginnings of the paths of such devices: `FORGETFUL_BELOW` there.
FORGETFUL_BELOW = ("/dev/pts/", "/dev/tty", "/proc/self/", "/proc/thread-self/")

#: Beginnings of the paths of drivers' interfaces: `DRIVERS` there.
DRIVERS = (
    "/dev/nvidia",
    "/dev/dri/",
    "/dev/kfd",
    "/dev/accel/",
    "/dev/infiniband/",
    "/dev/fuse",
    "/dev/kvm",
    "/dev/net/tun",
    "/dev/vhost-",
)

_FORGETFUL = f"""
SELECT file AS node FROM files WHERE kind = 'device' AND (
  path IN ({", ".join(f"'{path}'" for path in FORGETFUL)})
  OR {" OR ".join(f"path LIKE '{start}%'" for start in FORGETFUL_BELOW + DRIVERS)})"""

# The steps inside runs, as information flows: from `source` to `target`, from `since` to `until`.
# `back` and `forth` count the processes that a step in this direction enters.
_FLOWS = """
SELECT ~process AS source, file AS target, started_ns AS since, ended_ns AS until,
  'generated' AS flow, how, certainty, 1 AS back, 0 AS forth
FROM edges WHERE how IN ('write', 'rename', 'make')
UNION ALL
SELECT file, ~process, started_ns, ended_ns, 'used', how, certainty, 0, 1
FROM edges WHERE how IN ('read', 'exec')
UNION ALL
SELECT origin, file, time_ns, time_ns, 'derived', NULL, 'seen', 1, 1
FROM derivations
UNION ALL
SELECT ~origin, ~process, time_ns, time_ns, 'informed', how, 'seen', 1, 1
FROM informs WHERE how IN ('fork', 'exec')"""

#: Steps between runs, one kind after the other: `how`, the certainty, and in which directions the
#: step exists. `shift` is the clocks' difference: NULL if no time restricts the step. `opened`:
#: from when on the target can have got anything. The moments are those of files.
JUMP_KINDS = (
    f"""
SELECT maker AS source, copy AS target, 'same' AS flow, NULL AS how, 'seen' AS certainty, shift,
  CAST({FIRST} AS BIGINT) AS opened, NOT undone AS back, true AS forth,
  modified_ns AS copy_modified_ns, changed_ns AS copy_changed_ns,
  modified_ns AS maker_modified_ns, maker_changed_ns
FROM lake_same""",
    f"""
SELECT maker, copy, 'same', 'content', 'seen', shift, CAST({FIRST} AS BIGINT), NOT undone, true,
  modified_ns, changed_ns, maker_modified_ns, maker_changed_ns
FROM lake_alike""",
    *(
        f"""
SELECT source, target, 'same', NULL, certainty, shift, opened, back, forth, NULL, NULL, NULL, NULL
FROM ({jumps}) named_jumps"""
        for jumps in named.JUMPS
    ),
)

#: The views by name, each after those that it reads.
VIEWS = {
    "lake_makes": _MAKES,
    "lake_made": _MADE,
    "lake_versions": _VERSIONS,
    "lake_same": _SAME,
    "lake_alike": _ALIKE,
    "lake_forgetful": _FORGETFUL,
    "lake_contents": _CONTENTS,
    "lake_flows": _FLOWS,
    **named.VIEWS,
    "lake_jumps": "\nUNION ALL".join(JUMP_KINDS),
}

# Forwards, all moments are complements (`~`), which reverses their order. So in both directions the
# greatest moment of a node is the best, and a step of `low` to `high` is open from `low` on. An
# informing process matters whenever it informed: backwards, nothing bounds that step from below.
#: The steps inside runs in each direction: from `here` to `there`.
STEPS = {
    "back": f"""
SELECT target AS here, source AS there, back AS crossing, until AS high,
  CASE flow WHEN 'informed' THEN CAST({FIRST} AS BIGINT) ELSE since END AS low, *
FROM lake_flows""",
    "forth": """
SELECT source AS here, target AS there, forth AS crossing, ~since AS high, ~until AS low, *
FROM lake_flows""",
}

#: The steps between runs in each direction.
JUMPS = {
    "back": f"""
SELECT target AS here, source AS there, opened AS low, CAST({LAST} AS BIGINT) AS high,
  copy_modified_ns AS modified, copy_changed_ns AS changed, *
FROM lake_jumps WHERE back""",
    "forth": f"""
SELECT source AS here, target AS there, CAST({FIRST} AS BIGINT) AS low, ~opened AS high,
  maker_modified_ns AS modified, maker_changed_ns AS changed, *
FROM lake_jumps WHERE forth""",
}

#: The columns of a link of the nodes `source` and `target`.
LINK = (
    "CASE WHEN source < 0 THEN ~source END AS from_process",
    "CASE WHEN source >= 0 THEN source END AS from_file",
    "CASE WHEN target < 0 THEN ~target END AS to_process",
    "CASE WHEN target >= 0 THEN target END AS to_file",
    *("flow", "how", "certainty"),
    *("since AS started_ns", "until AS ended_ns"),
)
