"""Lineage in plain Python over the rows of a lake: what the engines' answers are compared with.

`crates/query/src/neighbours.rs` is the definition, and the tests compare this with `backstory of`
and `uses` first. It shares no text with the engines but the list of devices. Backwards, a node
carries the latest moment at which its content can have flowed to the root, forwards the earliest
one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from test_lineage import Compared, Link, Node

from backstory_lake.flows import CLOCK_GRANULARITY, DRIVERS, FORGETFUL, FORGETFUL_BELOW

Key = tuple[str, int]


class Step(NamedTuple):
    """A flow inside a run, from `source` to `target`."""

    source: Key
    target: Key
    flow: str
    how: str | None
    certainty: str
    since: int
    until: int


class Jump(NamedTuple):
    """A step between runs."""

    there: int
    how: str | None
    certainty: str
    #: The ns from the clock here to the clock there. `None`: no time restricts the step.
    shift: int | None
    #: The best moment here that is too bad, and the best one that there can be there.
    low: float = float("-inf")
    high: float = float("inf")


class Reference(Compared):
    """A lake as a graph in memory."""

    def __init__(self, lake: Path) -> None:
        super().__init__(lake)
        self._runs = {row["run"]: row for row in self._rows("runs")}
        self._files = {row["file"]: row for row in self._rows("files")}
        self._steps: dict[str, dict[Key, list[Step]]] = {"back": {}, "forth": {}}
        self._made: set[int] = set()
        for step in self._all_steps():
            self._steps["back"].setdefault(step.target, []).append(step)
            self._steps["forth"].setdefault(step.source, []).append(step)
            kind, file = step.target
            if kind == "file" and self._makes(step, self._files.get(file, {})):
                self._made.add(file)
        self._jumps: dict[str, dict[int, list[Jump]]] = {
            "back": defaultdict(list),
            "forth": defaultdict(list),
        }
        self._join_runs()
        Names(self).join()

    def _makes(self, step: Step, file: dict[str, Any]) -> bool:
        """True if a step into a version makes it. A possible write may have written nothing."""
        if step.flow != "generated":
            return bool(file.get("version", 0) > 0)
        if step.certainty == "seen" or file.get("changed_ns") is None:
            return True
        started: int = self._runs[file["run"]]["started_ns"]
        return bool(file["changed_ns"] >= started - CLOCK_GRANULARITY)

    def _rows(self, table: str) -> list[dict[str, Any]]:
        with self.question.rows(f"FROM {table}") as rows:
            names = [column[0] for column in rows.description or []]
            return [dict(zip(names, row)) for row in rows.fetchall()]

    def _all_steps(self) -> list[Step]:
        steps = []
        for row in self._rows("edges"):
            process, file = ("process", row["process"]), ("file", row["file"])
            facts = (row["how"], row["certainty"], row["started_ns"], row["ended_ns"])
            if row["how"] in ("write", "rename", "make"):
                steps.append(Step(process, file, "generated", *facts))
            elif row["how"] in ("read", "exec"):
                steps.append(Step(file, process, "used", *facts))
        for row in self._rows("derivations"):
            origin, file = ("file", row["origin"]), ("file", row["file"])
            steps.append(
                Step(origin, file, "derived", None, "seen", row["time_ns"], row["time_ns"])
            )
        for row in self._rows("informs"):
            if row["how"] != "wait":
                origin, process = ("process", row["origin"]), ("process", row["process"])
                moment = row["time_ns"]
                steps.append(Step(origin, process, "informed", row["how"], "seen", moment, moment))
        return steps

    def _join_runs(self) -> None:
        by_inode, by_digest = defaultdict(list), defaultdict(list)
        for file in self._made:
            row = self._files[file]
            if row["modified_ns"] is not None:
                by_inode[row["device"], row["inode"]].append(row)
                if row["digest"] is not None:
                    by_digest[row["digest"]].append(row)
        for copy in self._files.values():
            if copy["file"] in self._made or copy["modified_ns"] is None:
                continue
            same = [
                maker
                for maker in by_inode[copy["device"], copy["inode"]]
                if maker["run"] != copy["run"]
                and is_same(copy, maker)
                and self._may_be(copy, maker)
            ]
            for maker in same:
                self._jump(maker, copy, None)
            if copy["size"] >= 64 and all(self._runs[one["run"]]["undone"] for one in same):
                alike = [one for one in by_digest[copy["digest"]] if self._is_alike(copy, one)]
                if alike:
                    self._jump(max(alike, key=self._age), copy, "content")

    def _jump(self, maker: dict[str, Any], copy: dict[str, Any], how: str | None) -> None:
        shift = self._shift(maker["run"], copy["run"])
        if not self._runs[maker["run"]]["undone"]:
            self._jumps["back"][copy["file"]].append(Jump(maker["file"], how, "seen", shift))
        # Forwards the other run's clock is behind by the shift: moments are negative there.
        self._jumps["forth"][maker["file"]].append(Jump(copy["file"], how, "seen", shift))

    def _may_be(self, copy: dict[str, Any], maker: dict[str, Any]) -> bool:
        one, other = self._runs[copy["run"]], self._runs[maker["run"]]
        digests = {copy["digest"], maker["digest"]}
        return one["machine"] == other["machine"] or None in digests or len(digests) == 1

    def _is_alike(self, copy: dict[str, Any], maker: dict[str, Any]) -> bool:
        return (
            maker["run"] != copy["run"]
            and not self._runs[maker["run"]]["undone"]
            and maker["modified_ns"] <= copy["modified_ns"]
            and not is_same(copy, maker)
        )

    def _age(self, maker: dict[str, Any]) -> tuple[Any, ...]:
        run = maker["run"]
        started = self._runs[run]["started_ns"]
        return maker["modified_ns"], maker["inode"], started, run, maker["file"]

    def _shift(self, maker: str, copy: str) -> int:
        """The ns between the clocks of two runs of one boot."""
        one, other = self._runs[copy], self._runs[maker]
        if (one["boot"], one["machine"]) != (other["boot"], other["machine"]) or not one["boot"]:
            return 0
        if not (one["since_boot_ns"] and other["since_boot_ns"]):
            return 0
        ahead = [run["started_ns"] - run["since_boot_ns"] for run in (one, other)]
        return ahead[1] - ahead[0] if abs(ahead[1] - ahead[0]) >= 10**9 else 0

    def links(
        self, roots: list[Node], direction: str, bound: int | None, possible: bool
    ) -> set[Link]:
        """The links that a search of the graph finds."""
        search = Search(self, direction, bound, possible)
        found = search.links([("file", key) for key in self.keys(roots)])
        return {self._named(step) for step in found}

    def _named(self, step: Step) -> Link:
        (source, one), (target, other) = step.source, step.target
        ends = [one if source == "process" else None, one if source == "file" else None]
        ends += [other if target == "process" else None, other if target == "file" else None]
        return self._link((*ends, step.flow, step.how, step.certainty))

    def stops(self, node: Key) -> bool:
        """True for a device that passes nothing on."""
        row = self._files.get(node[1]) if node[0] == "file" else None
        if row is None or row["kind"] != "device":
            return False
        return row["path"] in FORGETFUL or row["path"].startswith(FORGETFUL_BELOW + DRIVERS)


class Names:
    """Joins runs by the names of connections and of things."""

    def __init__(self, graph: Reference) -> None:
        self._graph, self._runs = graph, graph._runs
        self._by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in graph._files.values():
            if file["kind"] in ("socket", "resource"):
                self._by_path[file["path"]].append(file)
        self._users: dict[int, set[int]] = defaultdict(set)
        for row in graph._rows("edges"):
            self._users[row["file"]].add(row["process"])
        self._processes = {row["process"]: row for row in graph._rows("processes")}

    def join(self) -> None:
        """Adds the steps."""
        served = self._sessions()
        for path, files in self._by_path.items():
            sockets = [file for file in files if file["kind"] == "socket"]
            for here in sockets:
                for there in sockets:
                    if here["run"] != there["run"]:
                        join = self._ssh if path.startswith("ssh:") else self._watched
                        if here["file"] not in served:
                            join(here, there)
            self._things([file for file in files if file["kind"] == "resource"])
        self._connections()

    def _add(self, source: dict[str, Any], target: dict[str, Any], certainty: str) -> None:
        shift = self._graph._shift(source["run"], target["run"])
        jumps = self._graph._jumps
        jumps["back"][target["file"]].append(Jump(source["file"], None, certainty, shift))
        jumps["forth"][source["file"]].append(Jump(target["file"], None, certainty, shift))

    def _ssh(self, here: dict[str, Any], there: dict[str, Any]) -> None:
        """The step from one end, in the direction in which data arrives or leaves there."""
        is_reply = here["path"].endswith(" (reply)")
        is_started = here["path"].removesuffix(" (reply)").split("/")[-1] == here["run"]
        one, other = self._runs[here["run"]], self._runs[there["run"]]
        shift = None
        if one["boot"] and one["boot"] == other["boot"]:
            shift = self._graph._shift(there["run"], here["run"])
        receives = is_reply != is_started
        if shift is not None and not receives:
            shift = -shift
        direction = "back" if receives else "forth"
        self._graph._jumps[direction][here["file"]].append(Jump(there["file"], None, "seen", shift))

    def _watched(self, server: dict[str, Any], client: dict[str, Any]) -> None:
        """Both steps between the run that watched a server and the run of a client."""
        one, other = self._runs[server["run"]], self._runs[client["run"]]
        is_pair = one["source"] is not None and other["source"] is None
        if not is_pair or not one["boot"] or one["boot"] != other["boot"]:
            return
        shift = self._graph._shift(server["run"], client["run"])
        pairs = [
            (there, here)
            for there in (self._processes[key] for key in self._users[server["file"]])
            for here in (self._processes[key] for key in self._users[client["file"]])
            if there["started_ns"] <= here["ended_ns"] + shift + 10_000_000
            and here["started_ns"] + shift <= there["ended_ns"] + 10_000_000
        ]
        if any(self._processes[key]["pid"] < 1 << 30 for key in self._users[server["file"]]):
            pairs = [(there, here) for there, here in pairs if there["pid"] == here["pid"]]
        if pairs:
            self._add(server, client, "possible")
            self._add(client, server, "possible")

    def _things(self, files: list[dict[str, Any]]) -> None:
        """From the last version of the newest older run to that before a run."""
        for later in files:
            if later["version"] > 0:
                continue
            older = [one for one in files if one["version"] > 0 and self._is_older(one, later)]
            if older:
                self._add(
                    max(older, key=lambda one: (self._age(one), one["version"])), later, "seen"
                )

    def _connections(self) -> None:
        """Joins the two ends of each connection."""
        rows = self._graph._rows("connections")
        unwatched = [row for row in rows if self._runs[row["run"]]["source"] is None]
        clients = [row for row in unwatched if row["role"] == "client"]
        servers = [row for row in unwatched if row["role"] == "server"]
        by_runs: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]]
        by_runs = defaultdict(list)
        for client in clients:
            for server in servers:
                if client["run"] != server["run"] and self._is_connection(client, server):
                    by_runs[client["run"], server["run"]].append((client, server))
        for (one, other), pairs in by_runs.items():
            fastest = min(server["began_ns"] - client["began_ns"] for client, server in pairs)
            to_client, to_server = 10**9 - fastest, fastest
            if self._is_one_boot(one, other):
                # From the server's clock to the client's, and back.
                to_client = self._graph._shift(one, other)
                to_server = -to_client
            for client, server in pairs:
                certainty = self._certainty(client, server)
                self._cross(client["file"], server["file"], certainty, to_client, server)
                self._cross(server["reply"], client["reply"], certainty, to_server, client)

    def _sessions(self) -> set[int]:
        """Joins clients and the sessions of watched servers. Returns the sessions' entities."""
        rows = self._graph._rows("connections")
        served = set()
        for server in rows:
            if server["role"] != "server" or self._runs[server["run"]]["source"] is None:
                continue
            found = [row for row in rows if self._can_be_served(row, server)]
            newest = max((row["began_ns"] for row in found), default=0)
            found = [row for row in found if row["began_ns"] + self._slack(row, server) >= newest]
            for client in found:
                served |= {server["file"], server["reply"]}
                is_sure = len(found) == 1 and self._is_sure(client, server)
                certainty = "seen" if is_sure else "possible"
                there = 60 * 10**9
                back = there
                if self._is_one_boot(client["run"], server["run"]):
                    there = self._graph._shift(client["run"], server["run"])
                    back = -there
                for source, target, shift in (
                    (client["file"], server["file"], there),
                    (server["reply"], client["reply"], back),
                ):
                    self._graph._jumps["back"][target].append(Jump(source, None, certainty, shift))
                    self._graph._jumps["forth"][source].append(Jump(target, None, certainty, shift))
        return served

    def _slack(self, client: dict[str, Any], server: dict[str, Any]) -> int:
        """How far the clocks of the two runs can differ."""
        return 10**7 if self._is_one_boot(client["run"], server["run"]) else 60 * 10**9

    def _can_be_served(self, client: dict[str, Any], server: dict[str, Any]) -> bool:
        """True if the session can have this client: the addresses and times agree."""
        run, other = client["run"], server["run"]
        if client["role"] != "client" or run == other or self._runs[run]["source"] is not None:
            return False
        if (client["own"], client["other"]) != (server["other"], server["own"]):
            return False
        one_boot = self._is_one_boot(run, other)
        networks = {client["network"], server["network"]}
        is_one_network = one_boot and (len(networks) == 1 or 0 in networks)
        if client["scope"] == "loopback" and not is_one_network:
            return False
        began = server["began_ns"] + self._graph._shift(run, other)
        slack, ended = (
            self._slack(client, server),
            self._processes[client["process"]]["ended_ns"],
        )
        return client["began_ns"] <= began + slack and ended + slack >= began

    def _is_sure(self, client: dict[str, Any], server: dict[str, Any]) -> bool:
        """True if no other process can have sent the statements of the session."""
        process = client["process"]
        pid = self._processes[process]["pid"]
        sharers = self._users[client["file"]] | self._users[client["reply"]]
        for row in self._graph._rows("informs"):
            is_heir = row["origin"] == process and row["how"] in ("fork", "exec")
            if is_heir and row["time_ns"] >= client["began_ns"]:
                sharers.add(row["process"])
        seen = [self._processes[key]["pid"] for key in self._users[server["file"]]]
        began = server["began_ns"] + self._graph._shift(client["run"], server["run"])
        return (
            self._certainty(client, server) == "seen"
            and sharers <= {process}
            and not any(one < 1 << 30 and one != pid for one in seen)
            and began - client["began_ns"] <= 60 * 10**9
        )

    def _cross(
        self, source: int, target: int, certainty: str, shift: int, receiver: dict[str, Any]
    ) -> None:
        flows = {(row["file"], row["flow"]) for row in self._graph._rows("edges")}
        jumps, began = self._graph._jumps, receiver["began_ns"]
        if (source, "generated") in flows:
            jumps["back"][target].append(Jump(source, None, certainty, shift, low=began))
        if (target, "used") in flows:
            jumps["forth"][source].append(Jump(target, None, certainty, shift, high=-began))

    def _is_one_boot(self, one: str, other: str) -> bool:
        boots = [self._runs[run]["boot"] for run in (one, other)]
        return boots[0] == boots[1] != ""

    def _is_connection(self, client: dict[str, Any], server: dict[str, Any]) -> bool:
        if (client["own"], client["other"]) != (server["other"], server["own"]):
            return False
        one_boot = self._is_one_boot(client["run"], server["run"])
        networks = {client["network"], server["network"]}
        if client["scope"] == "loopback" and not (
            one_boot and (len(networks) == 1 or 0 in networks)
        ):
            return False
        shift = self._graph._shift(client["run"], server["run"]) if one_boot else 0
        later = server["began_ns"] + shift - client["began_ns"]
        return (-(10**7) if one_boot else -60 * 10**9) <= later <= 60 * 10**9

    def _certainty(self, client: dict[str, Any], server: dict[str, Any]) -> str:
        one, other = self._runs[client["run"]], self._runs[server["run"]]
        is_near = self._is_one_boot(client["run"], server["run"])
        is_near = is_near and one["machine"] == other["machine"]
        return "seen" if is_near or client["scope"] == "global" else "possible"

    def _is_older(self, one: dict[str, Any], other: dict[str, Any]) -> bool:
        machines = {self._runs[file["run"]]["machine"] for file in (one, other)}
        return len(machines) == 1 and self._age(one) < self._age(other)

    def _age(self, file: dict[str, Any]) -> tuple[int, str]:
        return self._runs[file["run"]]["started_ns"], file["run"]


class Search:
    """A search in one direction. Forwards, moments are negative, so a greater one is better."""

    def __init__(
        self,
        graph: Reference,
        direction: str,
        bound: int | None,
        possible: bool,
        cut: frozenset[Key] = frozenset(),
    ) -> None:
        self._graph, self._bound, self._possible = graph, bound, possible
        #: Nodes from which nothing is followed, those of them that the search came to, and the
        #: steps from there.
        self._cut, self.came_to, self.beyond = cut, set[Key](), set[Step]()
        self._back = direction == "back"
        self._steps, self._jumps = graph._steps[direction], graph._jumps[direction]
        self._best: dict[tuple[Key, int], int] = {}

    def links(self, roots: list[Key]) -> set[Step]:
        """All steps that information can have taken."""
        waiting = [(root, 0) for root in roots]
        first = float("inf")
        best: dict[tuple[Key, int], Any] = {place: first for place in waiting}
        links: set[Step] = set()
        while waiting:
            node, depth = waiting.pop()
            moment = best[node, depth]
            if node in self._cut and node not in roots:
                self.came_to.add(node)
                self.beyond |= {step for step, _ in self._steps_from(node, depth, moment, True)}
                continue
            for step, (there, deep, new) in self._steps_from(node, depth, moment, node in roots):
                links.add(step)
                if new > best.get((there, deep), -first):
                    best[there, deep] = new
                    waiting.append((there, deep))
        return links

    def _steps_from(
        self, node: Key, depth: int, moment: Any, is_root: bool
    ) -> list[tuple[Step, tuple[Key, int, Any]]]:
        """The steps that information can have taken, and where each leads."""
        first = float("inf")
        reached = []
        if is_root or not self._graph.stops(node):
            for step in self._steps.get(node, []):
                found = self._taken(step, depth, moment)
                if found:
                    reached.append((step, found))
        jumps = self._jumps.get(node[1], []) if node[0] == "file" else []
        for file, how, certainty, shift, low, high in jumps:
            if low > moment or (not self._possible and certainty != "seen"):
                continue
            ends = (file, node[1]) if self._back else (node[1], file)
            source, target = (("file", end) for end in ends)
            is_free = shift is None or moment == first
            new = min(high, first if is_free else moment + shift)
            step = Step(source, target, "same", how, certainty, 0, 0)
            reached.append((step, (("file", file), depth, new)))
        return reached

    def _taken(self, step: Step, depth: int, moment: Any) -> tuple[Key, int, Any] | None:
        """The node that a step leads to, its depth and its moment; `None` for a closed step."""
        if not self._possible and step.certainty != "seen":
            return None
        there = step.source if self._back else step.target
        low, high = (step.since, step.until) if self._back else (-step.until, -step.since)
        # An informing process matters whenever it informed.
        if low > moment and not (self._back and step.flow == "informed"):
            return None
        if self._bound is None:
            depth = 0
        else:
            enters = there[0] == "process" or step.flow == "derived"
            depth += enters
            if depth > self._bound:
                return None
        return there, depth, min(high, moment)


class Contents:
    """The contents of a lake, and how many edges touch each: the definition of hubs."""

    def __init__(self, graph: Reference) -> None:
        self._graph = graph
        self.of = {("file", file): self._content(row) for file, row in graph._files.items()}
        self.edges = Counter(self.of["file", row["file"]] for row in graph._rows("edges"))

    def _content(self, row: dict[str, Any]) -> tuple[Any, ...]:
        machine = self._graph._runs[row["run"]]["machine"]
        if row["digest"] is not None and row["size"] >= 64:
            return (row["digest"],)
        if row["modified_ns"] is not None:
            return (machine, row["device"], row["inode"], row["size"], row["modified_ns"])
        return (machine, row["kind"], row["path"])

    def hubs(self, most: int, roots: list[Key]) -> frozenset[Key]:
        """The files of hubs, for a question about some files."""
        asked = {self.of[root] for root in roots}
        return frozenset(
            node
            for node, content in self.of.items()
            if self.edges[content] > most and content not in asked and not self._graph.stops(node)
        )


def is_same(copy: dict[str, Any], maker: dict[str, Any]) -> bool:
    """True for versions with one identity."""
    names = ("device", "inode", "size", "modified_ns")
    births = {copy["born_ns"], maker["born_ns"]}
    return all(copy[name] == maker[name] for name in names) and (len(births) == 1 or 0 in births)
