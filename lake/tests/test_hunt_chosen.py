"""Which runs of a lake `hunt` reads, and how: none that matters is left out."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import command
from hunter import Hunter, random_rule, rule, written
from invented import SECOND, Invented

from backstory_lake.batches import shell_words
from backstory_lake.privacy import Config, Privacy


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


def test_a_value_of_many_wildcards_is_compared_with_a_long_command_line(
    lake: Path, hunter: Hunter, tmp_path: Path
) -> None:
    made = Invented()
    run = made.run("run00001", host="h")
    made.process(run, program="/bin/echo", command=f"echo {'a' * 5000}", cwd="/")
    made.written(lake)
    value = "*a" * 40 + "*b"
    rules = written([rule("many", of={"CommandLine|contains": value})], tmp_path / "rules")
    assert hunter.found("hunt", "--lake", str(lake), "--rules", rules, "--rule", "many") == []
    # Only the first texts of the value chose the run.
    assert hunter.chosen == (1, 1)


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


@pytest.mark.parametrize("question", ["hunt", "timeline", "origin", "exfil", "touched"])
def test_a_question_that_lacks_memory_gets_it_by_the_option_of_the_message(
    lake: Path, hunter: Hunter, question: str
) -> None:
    invented(1, 5).written(lake)
    subject = [] if question == "hunt" else ["/h/in"]
    words = [question, *subject, "--lake", str(lake)]
    ended = hunter.run(*words, "--memory", "1")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "more than 1 MB of memory: narrow it, or allow more with --memory" in ended.stderr
    ended = hunter.run(*words, "--memory", "500")
    assert "memory" not in ended.stderr, ended.stderr


def test_a_choice_of_runs_that_takes_too_long_ends(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invented(1, 5).written(lake)
    endless = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    request = {"most": 1, "condition": f"({endless}) > 0"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(request)))
    ended = command("graphs", "--lake", str(lake), "--timeout", "1")
    assert (ended.returncode, ended.stdout) == (1, "")
    advice = "no answer within 1 s: choose fewer runs, or allow more with --timeout"
    assert advice in ended.stderr, ended.stderr


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
