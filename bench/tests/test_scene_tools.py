"""Under tools, a request counts as seen only if the tool has something of it to show."""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backstory_bench.cli import main
from backstory_bench.scenes import CASES
from backstory_bench.scenes.exchange import Exchange, traced, unescaped
from backstory_bench.scenes.replays import completed
from backstory_bench.scenes.run import request_rows, scene_rows, tables_of
from backstory_bench.scenes.tools import FIELDS, TOOLS, Seen, tool_names, tools_table

ONE = Exchange(b"GET /page?n=7 HTTP/1.1\r", b"HTTP/1.1 200 OK\r")
NONE_SEEN = "no tool saw it"


def hexed(data: bytes) -> str:
    """Bytes as `strace -xx` prints them."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def test_a_server_that_speaks_first_has_no_bytes_of_the_request_to_see() -> None:
    trace = f"7 write(4, {hexed(b'SSH-2.0-server')}, 14) = 14"
    for received, why in ((b"", ""), (b"SSH", "no traced call read the request")):
        assert TOOLS["strace"].lacks(Seen(trace, Exchange(received, b"SSH-2.0"), served=True)) == why


def test_a_signal_to_the_group_of_a_replay_does_not_end_the_suite(tmp_path: Path) -> None:
    done = completed(["sh", "-c", "echo begun; kill -TERM 0; sleep 5"], 30, None, tmp_path)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "begun\n")


def test_a_replay_beyond_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        completed(["sh", "-c", "sleep 60 & echo $! > pid; wait"], 1, None, tmp_path)
    state = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")

    def runs() -> bool:
        try:
            return state.read_text().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    deadline = time.monotonic() + 10
    while runs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs()


def test_the_bytes_behind_an_escaped_text_are_the_recorded_ones() -> None:
    text = "HTTP/1.1 200 OK\\r\n\\tback\\\\slash \\x00\\xfe é \\u202e"
    assert unescaped(text) == b"HTTP/1.1 200 OK\r\n\tback\\slash \x00\xfe " + "é \u202e".encode()


def test_a_trace_has_the_bytes_of_both_directions_also_in_parts() -> None:
    lines = [
        f"5     openat(AT_FDCWD, {hexed(b'/etc/passwd')}, O_RDONLY) = 3",
        *(f"5     read(4, {hexed(bytes([byte]))}, 1) = 1" for byte in b"GET "),
        "6     recvfrom(4, <unfinished ...>",
        f"6     <... recvfrom resumed>{hexed(b'/page')}, 8192, 0, NULL, NULL) = 5",
        f"12345 writev(4, [{{iov_base={hexed(b'one ')}, iov_len=4}}, {{iov_base={hexed(b'two')}, iov_len=3}}], 2) = 7",
        f"5     sendto(4, {hexed(b' three')}, 6, 0, NULL, 0) = 6",
        "5     --- SIGTERM {si_signo=SIGTERM} ---",
    ]
    assert traced("\n".join(lines)) == Exchange(b"GET /page", b"one two three")


STRACED = f"7 read(4, {hexed(ONE.received)}, 99) = 22\n7 writev(4, [{{iov_base={hexed(ONE.sent + b'rest')}}}], 1) = 20"
SHOWS = {
    "gdb": "stopped writev\n#0  writev ()\n",
    "gdb-all": "stopped send\n#0  send ()\n",
    "strace": STRACED,
    "perf": "# started\n\n3.62,msec,task-clock:u,3621119,100.00\n<not supported>,,cycles:u,0,100.00,,\n",
    "valgrind": "==5== Invalid read of size 8\n",
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_shows_the_request_has_seen_it(name: str) -> None:
    assert TOOLS[name].lacks(Seen(SHOWS[name], ONE, served=True)) == ""


@pytest.mark.parametrize(
    ("name", "output", "why"),
    [
        ("gdb", "error The program is not being run.\n", "no breakpoint was hit where the answer left"),
        ("strace", STRACED.partition("\n")[2], "no traced call read the request"),
        ("strace", STRACED.partition("\n")[0], "no traced call wrote the answer"),
        ("perf", "# started\n\n0,,context-switches:u,3,100.00\n<not supported>,,cycles:u,0\n", "nothing was counted"),
        ("valgrind", "valgrind: the 'impossible' happened:\n", "valgrind: the 'impossible' happened:"),
        (
            "valgrind",
            "==5== valgrind: Unrecognised\nvex: unhandled instruction bytes",
            "vex: unhandled instruction bytes",
        ),
    ],
)
def test_a_tool_that_shows_nothing_of_the_request_has_not_seen_it(name: str, output: str, why: str) -> None:
    assert TOOLS[name].lacks(Seen(output, ONE, served=True)) == why


@pytest.mark.parametrize("name", ["gdb", "gdb-all", "perf", "valgrind"])
def test_a_tool_around_a_program_that_did_not_serve_the_request_has_not_seen_it(name: str) -> None:
    assert TOOLS[name].lacks(Seen(SHOWS[name], ONE, served=False)) == "the request was not served"


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
@pytest.mark.parametrize(
    "call", ["os.write(1, answer)", "os.writev(1, [answer, b'.'])", "socket.socketpair()[0].sendmsg([answer])"]
)
@pytest.mark.parametrize("name", ["gdb", "gdb-all"])
def test_gdb_stops_in_the_child_that_writes_the_answer(tmp_path: Path, name: str, call: str) -> None:
    script, report = tmp_path / "commands.py", tmp_path / "report"
    script.write_text(TOOLS[name].commands(b"answer of a child", report))
    program = f"import os, socket; answer = bytes([97]) + b'nswer of a child'; os.fork() or {call}"
    words = ["gdb", "-q", "-batch", "-x", str(script), "--args", "/usr/bin/python3", "-c", program]
    done = completed(words, 60, None, tmp_path)
    if not report.exists():
        pytest.skip(f"gdb runs no Python: {done.stderr[-200:]}")
    function = call.partition("(")[0].rpartition(".")[2] if "socket" not in call else "sendmsg"
    assert report.read_text().startswith(f"stopped {function}\n#0 "), done.stderr[-500:]


FAKE = f"""#!{sys.executable}
import json, os, pathlib, sys
words = sys.argv[1:]
if words[0] == "requests":
    one = {{"number": 7, "role": "server", "bytes_out": 20}}
    print(json.dumps([one])[:-2] + ', "start": 1795919800.197457661}}]')
elif words[0] == "scene":
    assert words[3] == "@1795919800.197457661", words
    side = lambda text: {{"text": text}}
    request = {{"number": 7, "received": side("GET /page?n=7 HTTP/1.1\\\\r"), "sent": side("HTTP/1.1 200 OK\\\\r\\nrest")}}
    print(json.dumps({{"incidents": [{{"request": None}}, {{"request": request}}]}}))
elif words[0] == "replay":
    tool = words[words.index("--with") + 1] if "--with" in words else ""
    if tool.startswith("gdb"):
        sys.exit("no such debugger")
    if tool.startswith("strace"):
        file = pathlib.Path(words[words.index("--output-dir") + 1] + "/files" + tool.split()[-1])
        file.parent.mkdir(parents=True)
        file.write_text({STRACED!r})
    request = {{"fed": [], "calls": 9, "served": True, "copy_obstacles": []}}
    process = {{"difference": None, "bytes_compared": 20, "bytes_counted": 0}}
    files = {{"equal": 0, "different": 0}}
    found = {{"verdict": "equal", "stopped": None, "not_started": [], "processes": [process], "files": files}}
    found |= {{"calls": 9, "recorded_calls": 90, "unsteady": 0, "tries": 1, "clock_shift_ns": 0, "request": request}}
    print(json.dumps({{"identical": True, "outputs": [], "reconstruction": found}}))
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers as backstory does, for a record with one request."""
    program = tmp_path / "backstory"
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("BACKSTORY", str(program))
    return tmp_path


def arguments(*tools: str) -> argparse.Namespace:
    return argparse.Namespace(tools=list(tools), tries=14, limit=30.0, picks=1, seed=18, workdir=None, keep=None)


def test_a_request_is_reconstructed_without_a_tool_and_then_under_each(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tools themselves do not run.
    monkeypatch.setattr("backstory_bench.scenes.tools.found", lambda name: None if name == "perf" else name)
    rows = request_rows(CASES["nginx"], fake / "store", random.Random(18), arguments(*TOOLS))
    assert all(set(row) > {"case", "kind", "request", "tool", "verdict", "served", "seconds", "why"} for row in rows)
    assert [(row["tool"], row["verdict"], row.get("saw"), row["why"]) for row in rows] == [
        ("none", "equal", None, ""),
        ("gdb", "failed", "no", "no such debugger"),
        ("gdb-all", "failed", "no", "no such debugger"),
        ("strace", "equal", "yes", ""),
        ("valgrind", "equal", "no", "valgrind wrote nothing"),
    ]


def test_a_server_that_cannot_be_recorded_is_a_row_of_the_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY", "/no/such/program")
    monkeypatch.setattr(CASES["wsgiref"], "command", lambda top, port: [])
    monkeypatch.setattr(
        "backstory_bench.scenes.run.record_words", lambda *words: ["sh", "-c", "echo no server here >&2; exit 1"]
    )
    rows = scene_rows(CASES["wsgiref"], argparse.Namespace(**vars(arguments("gdb")), requests=5, record=[]))
    assert [(row["kind"], row["verdict"]) for row in rows] == [("tool", "failed")]
    assert "no server here" in str(rows[0]["why"])
    assert tools_table(rows)[-1].startswith("| wsgiref |  |  | failed |  | the server does not begin: no server here")


def of_tool(name: str, verdict: str, saw: str, **more: str) -> dict[str, object]:
    row = {"case": "nginx", "kind": "tool", "tool": name, "request": "9", "verdict": verdict, "saw": saw, "why": ""}
    return {**row, "bytes_compared": "20", "files_compared": "0", **more}


def test_a_tool_works_if_the_request_is_equal_and_was_seen() -> None:
    rows = [
        of_tool("none", "equal", ""),
        of_tool("gdb", "equal", "yes"),
        of_tool("gdb", "equal", "no", why=NONE_SEEN),
        of_tool("strace", "different", "yes", why="less output of the socket to 127.0.0.1:4711, byte 0"),
        of_tool("strace", "equal", "yes", bytes_compared="0"),
        of_tool("gdb", "failed", "no", case="redis", why="a | b"),
    ]
    table = tools_table(rows)
    assert table[0] == "| program | without a tool | gdb | strace |"
    assert table[2:4] == ["| nginx | 1 of 1 | 1 of 2 | 0 of 2 |", "| redis | – | 0 of 1 | – |"]
    assert table[-4:] == [
        f"| nginx | gdb | 9 | equal | no | {NONE_SEEN} |",
        "| nginx | strace | 9 | different | yes | less output of the socket to its client, byte 0 |",
        "| nginx | strace | 9 | nothing-compared | yes |  |",
        "| redis | gdb | 9 | failed | no | a \\| b |",
    ]


def test_results_of_tools_renew_their_table_and_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [of_tool("none", "equal", ""), of_tool("perf", "equal", "yes")]
    assert list(tables_of(rows)) == ["tools"]
    assert "tools" not in tables_of([{"case": "nginx", "kind": "server", "verdict": "failed", "why": ""}])
    results, page = tmp_path / "tools.csv", tmp_path / "page.md"
    lines = [",".join(FIELDS), *(",".join(str(row.get(name, "")) for name in FIELDS) for row in rows)]
    results.write_text("# backstory 0.1.0\n" + "\n".join(lines) + "\n")
    page.write_text("<!-- tools -->\n<!-- end of tools -->\n")
    assert main(["scenes", "--results", str(results), "--page", str(page)]) == 0
    assert "| nginx | 1 of 1 | 1 of 1 |" in page.read_text()
    assert "| nginx | 1 of 1 | 1 of 1 |" in capsys.readouterr().out


def test_tools_are_for_servers_and_have_known_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool_names("perf,gdb") == ["perf", "gdb"]
    for text in ("perf,ltrace", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            tool_names(text)
    assert main(["scenes", "--cases", "curl,lua", "--tools", "gdb"]) == 0
    assert capsys.readouterr().out.count("--tools is for servers") == 2


def test_the_page_has_a_place_for_the_table_of_tools() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/benchmark/reconstruction.md"
    assert "<!-- tools -->\n" in page.read_text() and "<!-- end of tools -->\n" in page.read_text()
