"""The suite is complete, readers understand each log, and instances detect broken results."""

import argparse
import base64
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from backstory_bench.cli import _matrix_choice, main
from backstory_bench.collectors import COLLECTORS, auditd, backstory, care, fsatrace, fspy, ltrace, probe_log, reprozip
from backstory_bench.collectors.base import Collector, and_runs, apt
from backstory_bench.collectors.strace_log import read, unescape
from backstory_bench.matrix.profile import Run, Truth, names
from backstory_bench.matrix.start import to_install
from backstory_bench.paired import Logs
from backstory_bench.workloads import INSTANCES, PAPER_GROUPS, Instance, minimal, select, suite
from backstory_bench.workloads.base import module, program


def test_all_groups_of_the_paper_have_as_many_instances_as_in_the_paper() -> None:
    number = {g: sum(i.group == g for i in INSTANCES.values()) for g in PAPER_GROUPS}
    assert all(number.values())
    known = {
        "IO bench lmbench": 19,
        "CPU bench SPLASH-3": 10,
        "BLAST": 5,
        "HTTP srv/traffic": 5,
        "HTTP srv/client": 2,
        "Utils": 8,
        "cp": 2,
    }
    assert {g: number[g] for g in known} == known
    assert number["Tar Archive"] == number["Tar Unarchive"] == 5
    assert sum(i.group == "UnixBench" for i in INSTANCES.values()) == 10


def test_the_minimal_suite_names_known_workloads_and_its_weights_sum_to_one() -> None:
    assert sum(minimal().values()) == pytest.approx(1, abs=1e-4)
    assert [i.key for i in suite("minimal")] == list(minimal())


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no workload"):
        select(["nonsense"])
    assert main(["run", "--workloads", "nonsense", "--out", str(tmp_path / "x")]) == 2
    assert "see: backstory-bench list workloads" in capsys.readouterr().err


def test_a_missing_collector_is_listed_with_its_reason_and_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FSATRACE", raising=False)
    assert main(["list", "collectors", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["fsatrace"]["missing"] == "set FSATRACE to the built fsatrace executable"
    assert "github.com/jacereda/fsatrace" in rows["fsatrace"]["install"]
    assert rows["none"]["missing"] is None
    assert all(c.what for c in COLLECTORS.values())


def test_missing_packages_are_installed_from_their_registry() -> None:
    needs = (program("sh"), program("no-such-program", "its-package"), module("no_such_module", "umap_no", "json"))
    instance = Instance("group", "name", "what", "true", needs=needs)
    there = Collector("there", lambda _: [], lambda: None, install=apt("unneeded"))
    absent = Collector("absent", lambda _: [], lambda: "not installed", install=apt("collector"))
    update, packages, projects, collector = to_install([instance], [there, absent])
    assert update == ("apt-get", "update")
    assert packages[-1] == "its-package" and "sh" not in packages
    assert projects[1:] == ("-m", "pip", "install", "no_such_module", "umap_no")
    assert collector[-1] == "collector"
    assert to_install([Instance("group", "name", "what", "true", needs=needs[:1])], [there]) == []


def test_a_collector_installed_meanwhile_is_no_longer_missing(tmp_path: Path) -> None:
    there = tmp_path / "there"
    missing = and_runs(lambda: None if there.exists() else "not installed", lambda _: ["env"])
    assert missing() == "not installed"
    there.touch()
    assert missing() is None
    fails = and_runs(lambda: None, lambda _: ["sh", "-c", "echo no counters >&2; exit 3"])
    assert fails() == "sh -c echo no counters >&2; exit 3 sh fails: no counters"


STRACE = """\
10 execve("/bin/sh", ["sh"], 0x1 /* 2 vars */) = 0
10 chdir("sub") = 0
10 openat(AT_FDCWD, "a\\303\\244\\n", O_RDONLY) = 3
10 openat(AT_FDCWD, "missing", O_RDONLY) = -1 ENOENT (No such file or directory)
10 openat(AT_FDCWD, "dir", O_RDONLY|O_DIRECTORY) = 4
10 openat(4, "in", O_WRONLY|O_CREAT, 0666) = 5
10 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
11 execve("/bin/cat", ["cat", "x"], 0x2 /* 2 vars */ <unfinished ...>
10 <... clone resumed>) = 11
11 <... execve resumed>) = 0
11 openat(AT_FDCWD</elsewhere>, "y", O_RDONLY) = 3</elsewhere/y>
11 rename("b", "c") = 0
10 stat("looked-up", 0x7ffc) = 0
10 symlink("no file", "link") = 0
"""


def test_the_log_of_strace_yields_absolute_names_and_process_starts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(STRACE)
    log = read(tmp_path / "log", "/start")
    assert log.files == {
        "/bin/sh", "/bin/cat", "/start/sub/aä\n", "/start/sub/dir/in", "/elsewhere/y", "/start/sub/b", "/start/sub/c",
    }  # fmt: skip
    assert log.starts == {("sh", "cat")}


def test_names_with_c_escapes_are_decoded_to_bytes() -> None:
    assert unescape(r"a\"\\\t\377\x41") == 'a"\\\t\udcffA'


def test_the_log_of_fsatrace_yields_used_files_without_look_ups(tmp_path: Path) -> None:
    (tmp_path / "fsatrace.log").write_text("r|/a\nq|/b\nm|/to|/from\n")
    assert fsatrace.read(tmp_path).files == {"/a", "/to", "/from"}


def test_the_trace_of_reprozip_yields_files_and_starts_through_forks(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    with sqlite3.connect(tmp_path / "trace" / "trace.sqlite3") as db:
        db.executescript(
            "create table processes(id integer, parent integer); insert into processes values(1, null), (2, 1), (3, 2);"
            "create table executed_files(name text, process integer, timestamp integer);"
            "insert into executed_files values('/bin/sh', 1, 1), ('/bin/cat', 3, 2);"
            "create table opened_files(name text, is_directory integer); insert into opened_files values('/x', 0), ('/d', 1);"
        )
    log = reprozip.read(tmp_path)
    assert log.files == {"/bin/sh", "/bin/cat", "/x"} and log.starts == {("sh", "cat")}


def test_the_log_of_ltrace_yields_the_files_of_successful_calls(tmp_path: Path) -> None:
    (tmp_path / "cwd").write_text("/start")
    (tmp_path / "ltrace.log").write_text(
        '7 cp->open("missing", 2162688, 0225)  = -1\n'
        '7 cp->open64("in", 0, 00)             = 3\n'
        '7 cp->openat(0xffffff9c, "/out", 513, 0) = 4\n'
        '7 cp->fopen("nowhere", "r")           = 0\n'
        '7 mv->rename("a", "/b")               = 0\n'
        "7 +++ exited (status 0) +++\n"
    )
    assert ltrace.read(tmp_path).files == {"/start/in", "/out", "/start/a", "/b"}


def test_the_log_of_fspy_yields_unescaped_names(tmp_path: Path) -> None:
    (tmp_path / "fspy.csv").write_text(
        '"""/a b""",AccessMode(READ)\n"""/q\\""\\\\ \\u{301}\\n\\xFF""",AccessMode(READ | WRITE)\n'
    )
    assert fspy.read(tmp_path).files == {"/a b", '/q"\\ \u0301\n\udcff'}


def test_the_archive_of_care_yields_its_files(tmp_path: Path) -> None:
    (tmp_path / "archive/rootfs/etc").mkdir(parents=True)
    (tmp_path / "archive/rootfs/etc/x").write_text("")
    (tmp_path / "archive/README.txt").write_text("")
    assert care.read(tmp_path).files == {"/etc/x"}


def test_the_log_of_probe_yields_files_and_starts_through_forks_and_spawns(tmp_path: Path) -> None:
    msgpack = pytest.importorskip("msgpack")

    def start(pid: int, parent: int, *argv: bytes) -> dict[str, object]:
        return {"data": {"type": "InitExecEpoch", "pid": pid, "parent_pid": parent, "argv": argv}, "ferrno": 17}

    def opened(name: bytes | None, number: int, mode: int = 0o100644) -> dict[str, object]:
        inode, path = {"number": number, "mode": mode}, {"directory": {"value": 0}, "name": name}
        return {"data": {"type": "Open", "path": path, "inode": inode}, "ferrno": 9}

    threads = {
        "1/0/1": [start(1, 0, b"/bin/sh", b"-c"), opened(b"missing", 0), opened(b"/etc", 5, 0o40755), opened(b"in", 6)],
        "2/0/2": [start(2, 1, b"/bin/sh", b"-c")],
        "2/1/2": [start(2, 1, b"cat"), opened(b"../out", 7), opened(None, 8)],
        "3/0/3": [start(3, 1, b"spawned")],
    }
    (tmp_path / "cwd").write_text("/start")
    with tarfile.open(tmp_path / "probe_log", "w:gz") as tar:
        for name, operations in threads.items():
            packed = msgpack.packb(operations)
            member = tarfile.TarInfo(f"pids/{name}")
            member.size = len(packed)
            tar.addfile(member, io.BytesIO(packed))
    log = probe_log.read(tmp_path)
    assert log.files == {"/start/in", "/out"} and log.starts == {("sh", "cat"), ("sh", "spawned")}


def test_the_metadata_of_snakemake_states_inputs_and_outputs(tmp_path: Path) -> None:
    metadata = tmp_path / ".snakemake/metadata"
    metadata.mkdir(parents=True)
    for output, inputs in (("count0.txt", ["tree/in"]), ("total.txt", ["count0.txt"])):
        (metadata / base64.urlsafe_b64encode(output.encode()).decode()).write_text(json.dumps({"input": inputs}))
    truth = INSTANCES["Workflows/snakemake"].truth
    assert truth is not None
    assert truth(tmp_path) == {str(tmp_path / name) for name in ("tree/in", "count0.txt", "total.txt")}


def test_names_are_compared_across_links_and_random_names(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to("real")
    files = {
        str(tmp_path / "link"),
        "/tmp/ccAbCdEf.o",
        "/proc/self/maps",
        "/dev/null",
        "/log/x",
        "/io/stdout",
        "/lib64/ld-linux-x86-64.so.2",
        str(tmp_path),
    }
    assert names(files, Path("/log"), Path("/io")) == {str(tmp_path / "real"), "/tmp/(random).o"}


def test_names_that_vary_from_run_to_run_are_compared_by_their_shape() -> None:
    both = {"/d/in", "/d/out"}
    true = Truth.of(
        Run(both | {"/shm/sem.a1-77", "/bin/sleep"}, {("sh", "cp"), ("sh", "sleep")}),
        Run(both | {"/shm/sem.XQ-1234"}, {("sh", "cp")}),
        None,
    )
    assert true.wanted == {*both, "/*/*.*-*"} and true.starts == {("sh", "cp")}
    assert true.comparable({"/d/in", "/shm/sem.zz-9"}) == {"/d/in", "/*/*.*-*"}
    found = true.comparable({"/d/in", "/d/other", "/bin/sleep"})
    assert found - true.right == {"/d/other"} and true.wanted - found == {"/d/out", "/*/*.*-*"}


@pytest.mark.parametrize(
    "key",
    [
        "Compile w/gcc/small-files",
        "Tar Unarchive/unarchive",
        "Utils bash/shell-incr",
        "Database/transactions",
        "Computing/lua",
        "Computing/sqlite",
        "Computing/x264",
        "Client starts/git",
        "Client starts/libreoffice",
        "Client starts/node",
        "Client starts/python",
        "Client starts/requests",
        "Client starts/chromium",
    ],
)
def test_an_instance_is_deterministic_and_detects_another_result(key: str, tmp_path: Path) -> None:
    import subprocess

    instance: Instance = INSTANCES[key]
    if reason := instance.lacking():
        pytest.skip(f"SKIPPED: {reason}")
    instance.prepare(tmp_path)
    made = []
    for _ in range(2):
        instance.reset(tmp_path)
        done = subprocess.run(instance.command(1), cwd=tmp_path, check=True, capture_output=True)
        made.append(instance.digest(tmp_path, done.stdout))
    assert made[0] == made[1]
    assert instance.digest(tmp_path, done.stdout + b"more") != made[0] or not instance.stdout
    for output in instance.outputs:
        shutil.rmtree(tmp_path / output) if (tmp_path / output).is_dir() else (tmp_path / output).unlink()
        assert instance.digest(tmp_path, done.stdout) != made[0]


def test_every_archive_is_pinned_by_its_digest() -> None:
    from backstory_bench.workloads import compile_package as c

    assert all(len(s.sha256) == 64 for s in (c.BZIP2, c.GIT, c.HDF5, c.PERL, c.PYTHON))


def test_a_closed_pipe_ends_a_listing_without_a_traceback() -> None:
    words = [sys.executable, "-m", "backstory_bench.cli", "list", "workloads", "--json"]
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_the_log_of_auditd_yields_files_and_starts_of_successful_calls(tmp_path: Path) -> None:
    lines = [
        'type=SYSCALL msg=audit(1.1:1): arch=c000003e syscall=56 success=yes exit=8 items=0 ppid=1 pid=7 comm="sh" exe="/usr/bin/dash"',
        'type=SYSCALL msg=audit(1.1:2): arch=c000003e syscall=59 success=yes exit=0 items=1 ppid=7 pid=8 comm="rm" exe="/usr/bin/rm"\x1dUID="root"',
        'type=CWD msg=audit(1.1:2): cwd="/w"',
        'type=PATH msg=audit(1.1:2): item=0 name="/usr/bin/rm" nametype=NORMAL',
        'type=SYSCALL msg=audit(1.1:3): arch=c000003e syscall=263 success=yes exit=0 items=2 ppid=7 pid=8 comm="rm" exe="/usr/bin/rm"',
        'type=CWD msg=audit(1.1:3): cwd="/w"',
        'type=PATH msg=audit(1.1:3): item=0 name="/w" nametype=PARENT',
        "type=PATH msg=audit(1.1:3): item=1 name=622062 nametype=DELETE",
        'type=SYSCALL msg=audit(1.1:4): arch=c000003e syscall=257 success=no exit=-2 items=1 ppid=7 pid=8 comm="rm" exe="/usr/bin/rm"',
        'type=CWD msg=audit(1.1:4): cwd="/w"',
        'type=PATH msg=audit(1.1:4): item=0 name="missing" nametype=UNKNOWN',
    ]
    (tmp_path / "audit.log").write_text("".join(f"{line}\n" for line in lines))
    log = auditd.read(tmp_path)
    assert log.files == {"/usr/bin/rm", "/w/b b"} and log.starts == {("dash", "rm")}


def test_a_report_needs_a_table_of_paired_rounds_and_a_run_never_overwrites_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rounds.csv"
    path.write_text("what,else\n1,2\n")
    assert main(["run", "--suite", "calls", "--collectors", "none", "--rounds", "1", "--out", str(path)]) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert main(["report", str(path)]) == 2
    assert "is not a table of paired rounds: its second line lacks workload" in capsys.readouterr().err
    assert path.read_text() == "what,else\n1,2\n"
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert main(["report", str(empty)]) == 2
    assert "is not a table of paired rounds" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [True, False])
def test_kept_stores_are_one_for_each_mode_of_backstory_and_others_are_new_for_each_run(
    tmp_path: Path, kept: bool
) -> None:
    logs = Logs(tmp_path, kept)
    seen = []
    for name in ["backstory", "backstory-lazy", "fsatrace"] * 2:
        with logs.of(COLLECTORS[name]) as log:
            seen.append((name, (log / "run").exists()))
            (log / "run").touch()
    modes = {name for name, is_there in seen if is_there}
    assert modes == ({"backstory", "backstory-lazy"} if kept else set())
    assert {name for name in COLLECTORS if logs.keeps(COLLECTORS[name])} >= modes
    logs.remove()
    assert not list(tmp_path.iterdir())


def test_collectors_of_functions_and_bytes_measure_only_if_they_are_named() -> None:
    def names(collectors: str | None) -> set[str]:
        given = argparse.Namespace(collector=[], resume=False, workloads=None, suite="minimal", collectors=collectors)
        return {collector.name for collector in _matrix_choice(given)[1]}

    assert "backstory-deep" in names(None)
    assert not names(None) & {"backstory-functions", "backstory-bytes", "backstory-deep-full", "strace-bytes"}
    assert names("backstory-functions,backstory-bytes") == {"none", "backstory-functions", "backstory-bytes"}


@pytest.mark.parametrize("has_engine", [True, False])
def test_a_missing_byte_engine_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_engine: bool
) -> None:
    said = "no run" if has_engine else "the byte engine is not installed: set BACKSTORY_BYTE_ENGINE"
    program = tmp_path / "backstory"
    text = "      --contents <MODE>  [possible values: off, lazy]\\n      --functions <GLOB>  Also\\n      --bytes         Run"
    program.write_text(
        f'#!/bin/sh\ncase $1 in record) printf "{text}\\n";; *) echo "backstory: {said}" >&2; exit 1;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("BACKSTORY", str(program))
    backstory._help.cache_clear()
    try:
        found = {name: COLLECTORS[f"backstory-{name}"].missing() for name in ("functions", "bytes", "deep")}
    finally:
        backstory._help.cache_clear()
    assert found == {
        "functions": None,
        "bytes": None if has_engine else said,
        "deep": "this backstory has no --deep",
    }
