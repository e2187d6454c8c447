"""The program `hunt --lake` with the package beside it, and random rules for it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from conftest import LIMITS, PACKAGE

from backstory_lake.lake import Lake
from backstory_lake.questions import Question
from backstory_lake.run_graphs import Request, RunGraphs

#: A program `backstory-lake` that keeps the answer.
WRAPPER = """#!/bin/sh
[ "$1" = graphs ] || exec {python} -m backstory_lake.cli "$@"
{python} -m backstory_lake.cli "$@" > "$HUNTER/answer"; status=$?
cat "$HUNTER/answer"
exit $status
"""

#: A program that keeps the request, and has an answer already.
STUB = """#!/bin/sh
cat > "$HUNTER/request"
cat "$HUNTER/answer"
"""


class Hunter:
    """The program, with the package beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._answer = directory / "answer"
        for name, text in (("real", WRAPPER.format(python=sys.executable)), ("stub", STUB)):
            program = directory / name / "backstory-lake"
            program.parent.mkdir(parents=True)
            program.write_text(text)
            program.chmod(0o755)

    def run(
        self, *words: str, store: Path | None = None, package: str = "real"
    ) -> subprocess.CompletedProcess[str]:
        """Runs the program. A question to a lake has the time of all tests."""
        if "--lake" in words and "--timeout" not in words:
            words = (*words, "--timeout", str(LIMITS.seconds))
        environment = os.environ | {
            "PATH": f"{self.directory / package}:{os.environ['PATH']}",
            "PYTHONPATH": str(PACKAGE),
            "HUNTER": str(self.directory),
            "HOME": str(self.directory),
        }
        if store is not None:
            environment["BACKSTORY_STORE"] = str(store)
        return subprocess.run(
            [os.environ["BACKSTORY_PROGRAM"], *words],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            env=environment,
            check=False,
        )

    def request(self, *words: str) -> Request:
        """The request of a question."""
        self._answer.write_text("n,0,0,0\nend\n")
        self.run(*words, package="stub")
        return Request.read((self.directory / "request").read_text())

    def answered(self, lake: Path, request: Request, *words: str) -> list[str]:
        """The findings, if the package is asked for this. It runs in this process."""
        question = Question(Lake.open(str(lake)), LIMITS)
        with closing(question), self._answer.open("w") as out:
            RunGraphs(question, request).write(out)
        return essence(self.found(*words, package="stub"))

    def found(self, *words: str, **more: Any) -> list[dict[str, Any]]:
        """The findings of `hunt`, or the events of `timeline`."""
        ended = self.run(*words, "--json", **more)
        found: list[dict[str, Any]] = json.loads(ended.stdout)
        assert ended.returncode == int(not found), ended.stderr
        return found

    @property
    def chosen(self) -> tuple[int, int]:
        """Of the last question: the runs that were meant, and those that were read."""
        words = self._answer.read_text().split("\n", 1)[0].split(",")
        return int(words[1]), int(words[2])


def essence(findings: list[dict[str, Any]]) -> list[str]:
    """Findings or events without what differs: the place, the order and commands that go on. A lake
    is not asked for the later uses of a match."""
    own = {"host", "machine", "page", "next", "later"}
    kept = ({key: one[key] for key in one if key not in own} for one in findings)
    return sorted(json.dumps(one, sort_keys=True) for one in kept)


def written(rules: list[dict[str, Any]], directory: Path) -> str:
    """Writes rules, which are YAML because they are JSON."""
    directory.mkdir(exist_ok=True)
    for rule in rules:
        (directory / f"{rule['id']}.yml").write_text(json.dumps(rule))
    return str(directory)


def rule(id: str, **detection: Any) -> dict[str, Any]:
    return {"title": id, "id": id, "detection": detection | {"condition": "of"}}


@contextmanager
def server() -> Iterator[int]:
    """A server on the loopback that answers each client, and takes what it sends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                # A client may end without reading the answer.
                with peer, contextlib.suppress(OSError):
                    peer.sendall(b"true\n")
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(4096):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


PATTERNS = [".bashrc", "/out", "/IN", "doc", "locked", "l/t", 'a "b" c', "x", "/d/", "%", "_"]
PATTERNS += ["'"]
PROGRAMS = ["/cat", "sh", "/mv", "/BASH", "/rm", "python"]
COMMANDS = ["cat in", "-c", "echo x", "mv doc", "<&3", "seq 25", "'a \"b\" c'"]
OPERATIONS = ["read", "write", "delete", "rename", "make", "exec", "send", "receive", "start"]


def selection(choice: random.Random) -> dict[str, Any]:
    """Some fields with values."""
    how = choice.choice(["|contains", "|endswith", "|startswith", "|contains|cased", ""])
    text = choice.choice(PATTERNS)
    star = f"*{text}*" if how == "" else text
    fields: list[tuple[str, Any]] = [
        ("Operation", choice.choice(OPERATIONS)),
        (f"TargetFilename{how}", star),
        ("TargetFilename|endswith|cased", [text, choice.choice(PATTERNS)]),
        ("Image|endswith", choice.choice(PROGRAMS)),
        ("ParentImage|contains", choice.choice(PROGRAMS)),
        ("CommandLine|contains", choice.choice(COMMANDS)),
        ("AncestorCommandLine|contains|all", choice.sample(COMMANDS, 2)),
        ("TargetKind", choice.choice(["file", "pipe", "socket", "directory"])),
        ("Existing", choice.choice(["true", "false"])),
        ("DestinationIp", ["127.0.0.1", "10.0.0.1"]),
        ("SourceFilename|contains", text),
        ("SuccessorFilename|exists", "true"),
        ("CurrentDirectory|contains", choice.choice(["work", "nowhere"])),
        ("TargetFilename|re", choice.choice(["rc$", "^/.*t$"])),
        ("Unexplained", "true"),
    ]
    return dict(choice.sample(fields, choice.randint(1, 2)))


def random_rule(choice: random.Random, at: int) -> dict[str, Any]:
    """A rule with one or two parts."""
    made: dict[str, Any] = {"title": f"r{at}", "id": f"r{at}"}
    detection = {"a": selection(choice), "b": selection(choice), "c": selection(choice)}
    conditions = ["a", "a or b", "a and not b", "a and (b or c)", "not a and b", "1 of them"]
    if choice.random() < 0.5:
        detection["condition"] = choice.choice(conditions)  # type: ignore[assignment]
    elif choice.random() < 0.8:
        made["correlation"] = {
            "type": "temporal_ordered",
            "rules": ["a", choice.choice(["b", "b and not c"])],
            "group-by": choice.choice(["process", "descendants", "flow", "run"]),
        }
    else:
        made["correlation"] = {
            "type": "event_count",
            "rules": "a",
            "group-by": choice.choice(["process", "descendants", "run"]),
            "timespan": "1m",
            "condition": {"gte": "3"},
        }
    return made | {"detection": detection}
