"""Questions about one file or one address: `origin`, `exfil` and `touched`.

`origin` and `exfil` have the addresses that a file's content came from, or can have been sent to:
`crates/cli/src/commands/network.rs` defines them for a store. `touched` has the processes that
used a file or an address: `crates/query/src/touches.rs`. The answers are at the level of processes.
A lake has files of other machines, too: a file is one of its recorded names, whatever is there now.
"""

from __future__ import annotations

import ipaddress

from . import rounds
from .engine import Engine
from .errors import LakeError
from .privacy import shell_words

#: The protocols of addresses.
_PROTOCOLS = ("tcp:", "udp:", "ip:", "unix:")
#: Relations that only look at a file.
LOOKUPS = ("stat", "missing", "list", "link")

# Servers of names are no place that content goes to.
_PEER = """{file}.kind = 'socket' AND {file}.path NOT LIKE 'unix:%'
  AND replace({file}.path, ' (reply)', '') NOT LIKE '%:53'"""


def files_at(engine: Engine, path: str) -> list[int]:
    """The keys of the files with this name, or another name like it."""
    at, within = engine.quoted(path), engine.quoted(path.rsplit("/", 1)[-1])
    found = engine.ask(
        f"SELECT file, path, aliases FROM files WHERE path = {at} "
        f"OR (aliases <> '' AND position({within} IN aliases) > 0)"
    )
    keys = [
        int(str(file))
        for file, own, aliases in found.rows
        if own == path or path in shell_words(str(aliases or ""))
    ]
    if not keys:
        raise LakeError(f"{engine.lake.name} has no file {path}")
    return sorted(set(keys))


def ends(engine: Engine, path: str, way: rounds.Way) -> str:
    """The addresses where the lineage of a file ends, and the processes that used them."""
    rounds.lineage(engine, files_at(engine, path), way)
    file, process = "to_file", "from_process"
    if way.direction == "back":
        file, process = "from_file", "to_process"
    return f"""SELECT DISTINCT replace(f.path, ' (reply)', '') AS address, r.host, r.machine,
  p.run, p.pid, p.command, p.cwd, p.started_ns, p.ended_ns, l.certainty
FROM ({rounds.answer()}) l
JOIN files f ON f.file = l.{file} JOIN processes p ON p.process = l.{process}
JOIN runs r ON r.run = p.run
WHERE {_PEER.format(file="f")}
ORDER BY p.started_ns DESC, p.run, p.pid, address"""


def touches(engine: Engine, subject: str, lookups: bool) -> str:
    """The processes that used a file or an address, the latest first.

    `derive`: the process gave it another name or version, or took it from one, and nothing else.
    """
    used = _at_address(engine, subject)
    if used is None:
        used = f"{{0}}.file IN ({', '.join(map(str, files_at(engine, subject)))})"
    elif not list(engine.ask(f"SELECT 1 FROM files f WHERE {used.format('f')} LIMIT 1").rows):
        raise LakeError(f"{engine.lake.name} has no connection with {subject}")
    wanted = "" if lookups else f"WHERE how NOT IN {LOOKUPS}"
    return f"""SELECT t.path, t.access, t.certainty, r.host, r.machine, p.run, p.pid, p.command,
  p.cwd, t.started_ns, t.ended_ns
FROM (
  SELECT process, min(path) AS path, coalesce(
      string_agg(how, ', ' ORDER BY how) FILTER (WHERE how <> 'derive'), 'derive') AS access,
    CASE WHEN max(seen) = 1 THEN 'seen' ELSE 'possible' END AS certainty,
    min(started_ns) AS started_ns, max(ended_ns) AS ended_ns
  FROM (
    SELECT e.process, e.how, min(replace(f.path, ' (reply)', '')) AS path,
      max(CASE WHEN e.certainty = 'seen' THEN 1 ELSE 0 END) AS seen,
      min(e.started_ns) AS started_ns, max(e.ended_ns) AS ended_ns
    FROM edges e JOIN files f ON f.file = e.file WHERE {used.format("f")}
    GROUP BY e.process, e.how
    UNION ALL
    SELECT d.process, 'derive', min(CASE WHEN {used.format("f")} THEN f.path ELSE o.path END), 1,
      min(d.time_ns), max(d.time_ns)
    FROM derivations d JOIN files f ON f.file = d.file JOIN files o ON o.file = d.origin
    WHERE ({used.format("f")}) <> ({used.format("o")}) GROUP BY d.process) acts
  {wanted} GROUP BY process) t
JOIN processes p ON p.process = t.process JOIN runs r ON r.run = p.run
ORDER BY t.ended_ns DESC, p.run, p.pid"""


def _at_address(engine: Engine, subject: str) -> str | None:
    """A condition for the connections with an address or a host. `None` for a file.

    It has the name of the files' rows as `{0}`.
    """
    plain = "replace({0}.path, ' (reply)', '')"
    if subject.startswith(_PROTOCOLS):
        name = engine.quoted(subject).replace("{", "{{").replace("}", "}}")
        return f"{{0}}.kind = 'socket' AND {plain} = {name}"
    try:
        host = ipaddress.ip_address(subject)
    except ValueError:
        return None
    name = f"[{host}]" if host.version == 6 else str(host)
    tcp, udp = (engine.quoted(f"{kind}:{name}:") for kind in ("tcp", "udp"))
    return f"{{0}}.kind = 'socket' AND (starts_with({plain}, {tcp}) OR starts_with({plain}, {udp}))"
