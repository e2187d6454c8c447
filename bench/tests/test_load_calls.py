"""The calls of a server are those of all its processes, and of no process of the recorder."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from backstory_bench import load_calls, servers
from backstory_bench.cli import main
from backstory_bench.load_calls import CannotAttachError, differences, parsed, rows_of, server_processes, summary
from backstory_bench.report import figures
from backstory_bench.web_servers import WebServer, children

SUMMARY = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.22    0.019612           9      2013         6 accept4
 38.78    0.012421           6      2007           close
  0.00    0.000000           0         1           total_of_no_line
------ ----------- ----------- --------- --------- ----------------
100.00    0.032033           7      4021         6 total
System call usage summary for 32 bit mode:
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.000010          10         3           close
------ ----------- ----------- --------- --------- ----------------
100.00    0.000010          10         3           total
"""

SERVER = """
import os, signal, socket
listener = socket.create_server(("127.0.0.1", {port}))
if child := os.fork():  # Both processes serve.
    signal.signal(signal.SIGTERM, lambda *_: (os.kill(child, signal.SIGKILL), os._exit(0)))
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    with open("{top}/files/small", "rb") as file:
        connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + file.read())
    connection.close()
"""
"""A server of two processes. It opens a file for each request."""

LAUNCHER = """
import os, subprocess, sys
# As the recorder's: a launcher, a supervisor and the command, which executes another file.
child = os.fork()
if child == 0:
    sys.exit(subprocess.call(sys.argv[1:]))
os.waitpid(child, 0)
"""


def test_each_call_is_counted_once_and_in_all_tables_of_the_summary() -> None:
    assert parsed(SUMMARY) == Counter(accept4=2013, close=2010, total_of_no_line=1)
    assert parsed("") == Counter()


def test_the_tables_have_the_calls_of_a_request_and_what_a_mode_adds() -> None:
    rows = rows_of("nginx", "native", {"close": 20, "accept4": 10, "futex": 5})
    rows += rows_of("nginx", "record", {"close": 20, "accept4": 10, "getsockopt": 10})
    rows += rows_of("lighttpd", "record", {"close": 10})
    assert [row["call"] for row in rows[:3]] == ["accept4", "close", "futex"]
    assert summary(rows, ["native", "record"], 10) == [
        "| server | native | record |",
        "| --- | ---: | ---: |",
        "| nginx | 3.5 | 4.0 |",
        "| lighttpd |  | 1.0 |",
    ]
    assert differences(rows, "native", 10)[2:] == ["| nginx, record | `futex` -0.50, `getsockopt` +1.00 |"]
    assert differences(rows[:3], "native", 10) == []


def test_processes_of_the_recorder_are_not_those_of_the_server(tmp_path: Path) -> None:
    words = ["-c", LAUNCHER, "sh", "-c", "sleep 60 & echo ready; read line; kill $!"]
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None and started.stdout.readline() == b"ready\n"
        (supervisor,) = children(started.pid)
        (shell,) = children(supervisor)
        (sleeper,) = children(shell)
        assert server_processes(started.pid, recorded=True) == [shell, sleeper]
        assert server_processes(started.pid, recorded=False) == [started.pid, supervisor, shell, sleeper]
        started.communicate(b"\n")
    assert server_processes(started.pid, recorded=True) == []


def needs_strace() -> None:
    if reason := load_calls.missing():
        pytest.skip(f"SKIPPED: {reason}")


def test_the_command_counts_the_calls_of_all_processes_of_a_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_strace()
    monkeypatch.setitem(servers.WEB_SERVERS, "tiny", WebServer("tiny", sys.executable, SERVER, ("{file}",)))
    out = tmp_path / "calls.csv"
    words = ["--servers", "tiny", "--modes", "native,strace", "--requests", "50", "--workdir", str(tmp_path)]
    assert main(["servers", "--calls", *words, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    with out.open() as file:
        assert file.readline().startswith("# strace -f -c of all processes of a server, while one client made 50 req")
        rows = list(figures(file))
    counts = {row["call"]: int(row["calls"]) for row in rows}
    # Each of two processes is in the call when strace attaches. It makes the call a second time, or
    # strace has not seen its begin and does not count it.
    assert 48 <= counts["accept4"] <= 54 and counts["openat"] == 50 and counts["sendto"] == 50
    assert {(row["server"], row["mode"]) for row in rows} == {("tiny", "native")}
    assert "| server | native |" in printed and "requests/s" not in printed
    assert "SKIPPED: mode strace: " in printed


def test_without_a_tracer_the_command_says_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["servers", "--calls", "--servers", "nginx"]) == 0
    assert capsys.readouterr().out == "SKIPPED: strace is not installed (Debian package strace)\n"
    strace = tmp_path / "strace"
    strace.write_text(
        "#!/bin/sh\necho 'strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted' >&2\nexit 1\n"
    )
    strace.chmod(0o755)
    (tmp_path / "sleep").symlink_to("/bin/sleep")
    assert main(["servers", "--calls", "--servers", "nginx"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "SKIPPED: strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted (root, or kernel."
    )


def test_a_thread_that_strace_does_not_follow_is_an_error() -> None:
    needs_strace()
    with subprocess.Popen(["sleep", "60"]) as one, subprocess.Popen(["sleep", "60"]) as other:
        processes = [one.pid]
        try:
            with pytest.raises(CannotAttachError, match=str(other.pid)), load_calls.counting(lambda: processes):
                processes.append(other.pid)
        finally:
            one.kill()
            other.kill()


def test_rates_and_calls_are_not_measured_together(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["servers", "--calls", "--perf", str(tmp_path)])


def test_an_answer_other_than_success_is_an_error(tmp_path: Path) -> None:
    script = (
        'import socket\nlistener = socket.create_server(("127.0.0.1", 0))\n'
        "print(listener.getsockname()[1], flush=True)\nconnection, _ = listener.accept()\n"
        'connection.recv(4096)\nconnection.sendall(b"HTTP/1.0 404 Not Found\\r\\n\\r\\n")\nconnection.close()'
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with pytest.raises(SystemExit, match="404"):
            load_calls.make_requests(port, "/small", 1)


def test_earlier_files_of_figures_have_the_same_names() -> None:
    for path in Path(__file__).parents[1].joinpath("runs").glob("*-calls-of-requests.csv"):
        with path.open() as file:
            names = csv.DictReader(line for line in file if not line.startswith("#")).fieldnames
        assert names == load_calls.FIELDS, path
