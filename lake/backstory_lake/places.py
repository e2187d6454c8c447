"""Questions about one file or one address: `origin`, `exfil` and `touched`.

`origin` and `exfil` have the addresses that a file's content came from, or can have been sent to:
`crates/cli/src/commands/network.rs` defines them for a store. `touched` has the processes that
used a file or an address: `crates/query/src/touches.rs`. The answers are at the level of processes:
a way has a step for each process, and not for each command of several processes.
A lake has files of other machines, too: a file is one of its recorded names, whatever is there now.
"""

from __future__ import annotations

import ipaddress
import json
from collections import defaultdict
from typing import Any

from . import rounds, ways
from .engine import Engine
from .errors import LakeError
from .printing import escaped, is_utf8, text
from .privacy import shell_words
from .subjects import at_path

#: The protocols of addresses.
_PROTOCOLS = ("tcp:", "udp:", "ip:", "unix:")
#: The processes where the lineage of a file ends, and their addresses.
ENDS = "lake_network_ends"

Row = dict[str, Any]

#: Accesses that only look at a file.
LOOKUPS = ("stat", "dir", "missing", "link")
#: All accesses, and how a name came from another, in the order of `touched --json` of a store.
_ACCESS = ("read", "write", "delete", "rename", "exec", *LOOKUPS, "meta")
ORDER = {word: place for place, word in enumerate(_ACCESS)}
NAMED = ("renamed", "linked", "copied")

# How the process of a derivation `d` made the version `f` of the version `o`: the rule of
# `crates/query/src/touches.rs`. A renamed directory takes its files with it.
_DERIVATION = """CASE
    WHEN EXISTS (SELECT 1 FROM edges e JOIN files n ON n.file = e.file
      WHERE e.process = d.process AND e.how = 'rename' AND (e.file = d.file
        OR starts_with(f.path, n.path || '/')
          AND ends_with(o.path, substr(f.path, length(n.path) + 1))))
    THEN 'renamed'
    WHEN EXISTS (SELECT 1 FROM edges e
      WHERE e.process = d.process AND e.how = 'make' AND e.file = d.file) THEN 'linked'
    ELSE 'copied' END"""

# Servers of names are no place that content goes to.
_PEER = """{file}.kind = 'socket' AND {file}.path NOT LIKE 'unix:%'
  AND replace({file}.path, ' (reply)', '') NOT LIKE '%:53'"""


def files_at(engine: Engine, path: str) -> list[int]:
    """The keys of the files with this name, or another name like it."""
    at = at_path(engine, path)
    # Among the other names, one that is not UTF-8 has escapes.
    within = engine.quoted(path.rsplit("/", 1)[-1] if is_utf8(path) else "$'")
    found = engine.ask(
        f"SELECT file, {at} AS is_own, aliases FROM files WHERE {at} "
        f"OR (aliases <> '' AND position({within} IN aliases) > 0)"
    )
    keys = [
        int(str(file))
        for file, is_own, aliases in found.rows
        if is_own or path in shell_words(str(aliases or ""), "surrogateescape")
    ]
    if not keys:
        raise LakeError(f"{engine.lake.name} has no file {escaped(text(path))}")
    return sorted(set(keys))


def ends(engine: Engine, path: str, way: rounds.Way) -> list[Row]:
    """The addresses where the lineage of a file ends: a row for each process that used one.

    Each has the bytes, when the process used the address last, and the way from the file to it.
    """
    files = files_at(engine, path)
    rounds.lineage(engine, files, way)
    file, process = "to_file", "from_process"
    if way.direction == "back":
        file, process = "from_file", "to_process"
    engine.keep(
        ENDS,
        f"""SELECT l.{process} AS process, replace(f.path, ' (reply)', '') AS address,
  max(l.certainty) AS certainty, max(l.ended_ns) AS time_ns
FROM ({rounds.answer()}) l JOIN files f ON f.file = l.{file}
WHERE l.{process} IS NOT NULL AND {_PEER.format(file="f")} GROUP BY ALL""",
    )
    found = _rows(
        engine,
        f"""SELECT e.address, r.host, r.machine, p.run, p.process, p.pid, p.command, p.cwd,
  p.started_ns, p.ended_ns, e.time_ns, e.certainty
FROM {ENDS} e JOIN processes p ON p.process = e.process JOIN runs r ON r.run = p.run
ORDER BY e.time_ns DESC, p.run, p.pid, e.address""",
    )
    peers = _rows(
        engine,
        f"""SELECT c.run, c.address, c.process, c.names, c.sent, c.received FROM peers c JOIN (
  SELECT DISTINCT p.run, e.address FROM {ENDS} e JOIN processes p ON p.process = e.process) o
ON o.run = c.run AND o.address = c.address""",
    )
    by_contact: dict[tuple[Any, Any], list[Row]] = defaultdict(list)
    for one in peers:
        by_contact[one["run"], one["address"]].append(one)
    found_ways = ways.to_processes(engine, files, way, f"SELECT process FROM {ENDS}")
    for row in found:
        contacts = by_contact[row["run"], row["address"]]
        row["names"] = sorted({name for one in contacts for name in json.loads(one["names"])})
        known = [one for one in contacts if one["sent"] is not None]
        # A process whose bytes are not known has those of its run.
        own = [one for one in known if one["process"] == row["process"]] or known
        for name in ("sent", "received"):
            row[name] = sum(one[name] for one in own) if own else None
        steps = [dict(step) for step in found_ways.get(row.pop("process"), [])]
        # The file can have another name, too.
        steps[0]["from"] = path
        steps[-1]["to"] = row["address"]
        row["way"] = steps
    return found


def _rows(engine: Engine, sql: str) -> list[Row]:
    answer = engine.ask(sql)
    return [dict(zip(answer.names, row)) for row in answer.rows]


def touches(engine: Engine, subject: str, lookups: bool) -> list[Row]:
    """The processes that used a file or an address, the latest first."""
    used = _at_address(engine, subject)
    if used is None:
        used = f"{{0}}.file IN ({', '.join(map(str, files_at(engine, subject)))})"
    elif not list(engine.ask(f"SELECT 1 FROM files f WHERE {used.format('f')} LIMIT 1").rows):
        raise LakeError(f"{engine.lake.name} has no connection with {escaped(text(subject))}")
    looks = ", ".join(engine.quoted(one) for one in LOOKUPS)
    found = _rows(
        engine,
        f"""SELECT t.path, t.access, t.possible, t.certainty, t.made AS "to", t.origins AS "from",
  r.host, r.machine, p.run, p.pid, p.program, p.command, p.cwd, t.started_ns, t.ended_ns
FROM (
  SELECT process, min(path) AS path, list(DISTINCT access) AS access,
    list(DISTINCT access) FILTER (WHERE certainty = 'possible') AS possible,
    max(certainty) AS certainty,
    list(DISTINCT name) FILTER (WHERE side = 'to') AS made,
    list(DISTINCT name) FILTER (WHERE side = 'from') AS origins,
    min(started_ns) AS started_ns, max(ended_ns) AS ended_ns
  FROM ({_acts(used)}) acts GROUP BY process
  HAVING {lookups} OR count(name) > 0 OR coalesce(bool_or(access NOT IN ({looks})), false)) t
JOIN processes p ON p.process = t.process JOIN runs r ON r.run = p.run
ORDER BY t.ended_ns DESC, p.run, p.pid""",
    )
    for row in found:
        for name in ("access", "possible"):
            # A newer writer may know other words, which come last.
            row[name] = sorted(filter(None, row[name] or []), key=lambda one: ORDER.get(one, 99))
        for name in ("to", "from"):
            named = [one for one in row[name] or [] if one]
            row[name] = sorted(named, key=lambda one: (NAMED.index(one["how"]), one["path"]))
    return found


def _acts(used: str) -> str:
    """The acts on files of which the condition `used` holds: a row for each, and for each name.

    `name`: the process gave the file another name or a copy (`to`), or took it from one (`from`).
    """
    plain = "replace(f.path, ' (reply)', '')"
    return f"""
SELECT e.process,
  CASE e.how WHEN 'make' THEN 'write' WHEN 'list' THEN 'dir' ELSE e.how END AS access,
  min({plain}) AS path, max(e.certainty) AS certainty, NULL AS side, NULL AS name,
  min(e.started_ns) AS started_ns, max(e.ended_ns) AS ended_ns
FROM edges e JOIN files f ON f.file = e.file WHERE {used.format("f")} GROUP BY e.process, access
UNION ALL
SELECT e.process, NULL, f.path, NULL, 'to', {{'how': 'linked', 'path': f.path}}, NULL, NULL
FROM edges e JOIN files f ON f.file = e.file
WHERE {used.format("f")} AND e.how = 'make' AND f.kind = 'file' AND f.previous IS NOT NULL
UNION ALL
SELECT d.process, NULL, CASE WHEN {used.format("f")} THEN f.path ELSE o.path END,
  coalesce((SELECT max(e.certainty) FROM edges e WHERE e.process = d.process
    AND e.file = d.file AND e.how IN ('write', 'rename', 'make')), 'seen'),
  CASE WHEN {used.format("f")} THEN 'from' ELSE 'to' END,
  CASE WHEN f.path <> o.path THEN {{'how': {_DERIVATION},
    'path': CASE WHEN {used.format("f")} THEN o.path ELSE f.path END}} END,
  d.time_ns, d.time_ns
FROM derivations d JOIN files f ON f.file = d.file JOIN files o ON o.file = d.origin
WHERE ({used.format("f")}) <> ({used.format("o")})"""


def _at_address(engine: Engine, subject: str) -> str | None:
    """A condition for the connections with an address, a host, or its port. `None` for a file.

    It has the name of the files' rows as `{0}`.
    """
    plain = "replace({0}.path, ' (reply)', '')"
    if subject.startswith(_PROTOCOLS):
        name = engine.quoted(subject).replace("{", "{{").replace("}", "}}")
        return f"{{0}}.kind = 'socket' AND {plain} = {name}"
    name, _, port = subject.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) < 1 << 16
    inner = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    host = _ip(inner) if is_port else None
    # In an address with a port, only version 6 is in brackets.
    if host is not None and (inner != name) == (host.version == 6):
        names = ", ".join(
            engine.quoted(f"{kind}:{_host(host)}:{int(port)}") for kind in ("tcp", "udp")
        )
        return f"{{0}}.kind = 'socket' AND {plain} IN ({names})"
    host = _ip(subject)
    if host is None:
        return None
    tcp, udp = (engine.quoted(f"{kind}:{_host(host)}:") for kind in ("tcp", "udp"))
    return f"{{0}}.kind = 'socket' AND (starts_with({plain}, {tcp}) OR starts_with({plain}, {udp}))"


def _host(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The host as addresses of a record have it."""
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    # Python before 3.13 writes this one in hexadecimal digits.
    return f"[{ip}]" if ip.ipv4_mapped is None else f"[::ffff:{ip.ipv4_mapped}]"


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        # A record has no zones, such as `%eth0`.
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None
