"""The suite is complete, every log is read as it was written, and every instance can tell a broken result."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from backstory_bench.cli import main
from backstory_bench.collectors import COLLECTORS, fsatrace, reprozip
from backstory_bench.collectors.strace_log import read, unescape
from backstory_bench.matrix.profile import names
from backstory_bench.workloads import INSTANCES, PAPER_GROUPS, Instance, minimal, select, suite


def test_all_groups_of_the_paper_have_instances_and_the_paper_s_numbers_of_them() -> None:
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


def test_an_unknown_name_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no workload"):
        select(["nonsense"])
    assert main(["run", "--workloads", "nonsense", "--out", str(tmp_path / "x")]) == 2
    assert "see: backstory-bench list workloads" in capsys.readouterr().err


def test_what_can_t_run_here_is_listed_with_its_reason_and_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FSATRACE", raising=False)
    assert main(["list", "collectors", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["fsatrace"]["missing"] == "set FSATRACE to the built fsatrace executable"
    assert "github.com/jacereda/fsatrace" in rows["fsatrace"]["install"]
    assert rows["none"]["missing"] is None
    assert all(c.what for c in COLLECTORS.values())


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


def test_strace_s_log_is_read_as_files_with_absolute_names_and_starts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(STRACE)
    log = read(tmp_path / "log", "/start")
    assert log.files == {
        "/bin/sh", "/bin/cat", "/start/sub/aä\n", "/start/sub/dir/in", "/elsewhere/y", "/start/sub/b", "/start/sub/c",
    }  # fmt: skip
    assert log.starts == {("sh", "cat")}


def test_names_in_c_s_way_are_any_bytes() -> None:
    assert unescape(r"a\"\\\t\377\x41") == 'a"\\\t\udcffA'


def test_fsatrace_s_log_gives_used_files_not_looked_up_ones(tmp_path: Path) -> None:
    (tmp_path / "fsatrace.log").write_text("r|/a\nq|/b\nm|/to|/from\n")
    assert fsatrace.read(tmp_path).files == {"/a", "/to", "/from"}


def test_reprozip_s_trace_gives_files_and_starts_through_plain_forks(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "key", ["Compile w/gcc/small-files", "Tar Unarchive/unarchive", "Utils bash/shell-incr", "Database/transactions"]
)
def test_an_instance_makes_the_same_twice_and_another_result_shows(key: str, tmp_path: Path) -> None:
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


def test_a_checkout_of_every_archive_is_pinned_by_its_digest() -> None:
    from backstory_bench.workloads import compile_package as c

    assert all(len(s.sha256) == 64 for s in (c.BZIP2, c.GIT, c.HDF5, c.PERL, c.PYTHON))
