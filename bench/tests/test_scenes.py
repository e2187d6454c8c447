"""The reconstruction of scenes reads what backstory answers, and counts no failure as equal."""

import http.client
import random
import re
import shutil
import socket
import threading
from pathlib import Path

import pytest

from backstory_bench.cli import main
from backstory_bench.scenes import CASES
from backstory_bench.scenes.all_attempts import attempts_table, starts_table
from backstory_bench.scenes.beside_paper import beside_paper, needed
from backstory_bench.scenes.clients import VIEWS, GitClient, KeptAlive, ManyPages, serving
from backstory_bench.scenes.replays import answer_row, difference, judged, record_words
from backstory_bench.scenes.run import FIELDS, answered, summary
from backstory_bench.scenes.series import series_table
from backstory_bench.scenes.tls import TLS_CLIENTS, TLS_SERVERS, make_pem
from backstory_bench.scenes.verdicts import EQUAL, NOTHING, verdict_of
from backstory_bench.scenes.web import SIZES, ask, make_files
from backstory_bench.scenes.whole import WHOLE, whole_table
from backstory_bench.web_servers import free_port

TABLES = ("results", "requests", "attempts", "paper", "starts")
RUNS = Path(__file__).resolve().parents[1] / "runs"


def row(verdict: str, **more: object) -> dict[str, object]:
    return {"case": "nginx", "verdict": verdict, "calls": "20", "recorded_calls": "1000", "share": "0.02"} | more


def test_options_of_a_record_come_before_its_command(tmp_path: Path) -> None:
    words = record_words(tmp_path, "one", "--fixed-addresses")
    assert words[-2:] == ["--fixed-addresses", "--"] and words[words.index("--name") + 1] == "one"


def test_a_row_counts_its_verdicts_and_gives_the_first_difference() -> None:
    rows = [
        row("equal", tries="1", seconds="0.5", why=""),
        row("equal-but-volatile", tries="3", seconds="1.5", why="other output of a socket, byte 7"),
        row("equal-where-recorded", tries="2", seconds="1.5", why=""),
        row("different", tries="14", seconds="2.5", unsteady="1", why="less output of a socket, byte 0"),
        {"case": "nginx", "verdict": "failed", "why": "no result"},
    ]
    line = summary(rows)[-1]
    start = "| nginx | 1000 | 20 (2.00 %) | 1 | 1 | 1 | 0 | 2 | 1 |"
    assert line == f"{start} 1 to 14 |  | less output of a socket, byte 0 |"


def test_a_case_that_could_not_be_recorded_has_a_row_with_its_reason() -> None:
    lines = summary([{"case": "sshd", "verdict": "failed", "why": "the server does not begin"}])
    assert lines[-1] == "| sshd | 0 | 0 (0.00 %) | 0 | 0 | 0 | 0 | 1 |  |  |  | the server does not begin |"


def test_a_row_counts_the_requests_that_needed_another_time_of_day() -> None:
    shifts = ["0", "-2000000", "50000000", ""]
    line = summary([row("equal", tries="1", clock_shift_ns=shift) for shift in shifts])[-1]
    assert line == "| nginx | 1000 | 20 (2.00 %) | 4 | 0 | 0 | 0 | 0 |  | 1 to 1 | 2 |  |"


@pytest.mark.parametrize("verdict", EQUAL)
def test_a_row_without_anything_compared_is_not_equal(verdict: str) -> None:
    nothing = {"bytes_compared": "0", "files_compared": "0"}
    assert verdict_of(row(verdict, **nothing)) == NOTHING
    for compared in ({"bytes_compared": "1"}, {"files_compared": "2"}):
        assert verdict_of(row(verdict, **(nothing | compared))) == verdict
    # Earlier series have no column of files, because they compared none.
    assert verdict_of(row(verdict, bytes_compared="0")) == NOTHING
    # A row without both columns does not say what was compared.
    assert verdict_of(row(verdict)) == verdict


def test_a_difference_stays_one_without_anything_compared() -> None:
    for verdict in ("different", "failed"):
        assert verdict_of(row(verdict, bytes_compared="0", files_compared="0")) == verdict


def test_tables_count_rows_without_anything_compared_apart() -> None:
    nothing = row("equal", kind="server", requests=1, bytes_compared="0", files_compared="0", why="")
    rows = [nothing, nothing | {"files_compared": "1"}]
    assert summary(rows)[-1] == "| nginx | 1000 | 20 (2.00 %) | 1 | 0 | 0 | 1 | 0 |  |  |  |  |"
    assert beside_paper(rows, EQUAL)[-1] == "| here | server, nginx | 1000 | 20 | 2.00 % | – | – | 1 of 2 |"
    whole = whole_table([one | {"kind": "whole", "case": "lua", "request": "a"} for one in rows], EQUAL)
    assert whole[2] == "| lua | 2 | 2000 | 1 | 0 | 0 | 1 | 0 | 0 |"
    assert whole[-1] == "| lua: a | nothing was compared |"


@pytest.mark.parametrize("verdict", ["different", "failed"])
def test_no_failure_counts_as_equal(verdict: str) -> None:
    assert verdict not in EQUAL


def test_the_first_difference_is_named_with_its_place() -> None:
    found = {
        "stopped": None,
        "not_started": [],
        "processes": [
            {"difference": None},
            {"difference": {"kind": "other output", "object": "the socket to 127.0.0.1:9", "position": 7}},
        ],
    }
    assert difference({"reconstruction": found}) == "other output of the socket to 127.0.0.1:9, byte 7"
    assert difference({"reconstruction": found | {"stopped": "no process made a call"}}) == "no process made a call"


def answer(verdict: str, identical: bool, **more: object) -> dict[str, object]:
    """An answer of `replay --deep --json`, with two files."""
    process = {"difference": None, "bytes_compared": 7, "bytes_counted": 2}
    found = {
        "verdict": verdict,
        "stopped": None,
        "not_started": [],
        "processes": [process],
        "calls": 20,
        "recorded_calls": 1000,
        "unsteady": 0,
        "tries": 3,
        "clock_shift_ns": -2_000_000,
        "request": None,
        "files": {"equal": int(identical), "different": int(not identical), "not_compared": 1},
    }
    outputs = [{"path": "/w/a", "state": "unknown"}, {"path": "/w/b", "state": "identical" if identical else "missing"}]
    return {"identical": identical, "outputs": outputs, "reconstruction": found | more}


@pytest.mark.parametrize("verdict", [*EQUAL, "different"])
def test_a_file_that_differs_is_a_difference_though_the_programs_are_equal(verdict: str) -> None:
    assert judged(answer(verdict, identical=False)) == ("different", "missing file /w/b")
    assert judged(answer(verdict, identical=True)) == (verdict, "")


def test_a_row_has_the_shift_of_the_clock_and_the_bytes_of_all_processes() -> None:
    request = {"fed": [1, 2], "calls": 9, "executed_calls": 60, "executed_start_calls": 30}
    request |= {"start_calls": 10, "start_s": 0.25, "executed_s": 1.5, "executed_start_s": 0.75}
    request |= {"copy_obstacles": ["threads", "epoll"]}
    found = answer_row(answer("equal", identical=True, request=request))
    assert set(found) <= set(FIELDS)
    assert (found["clock_shift_ns"], found["fed"], found["bytes_compared"]) == (-2_000_000, 2, 7)
    assert (found["start_calls"], found["start_s"], found["executed_start_s"]) == (10, 0.25, 0.75)
    assert (found["verdict"], found["why"], found["share"]) == ("equal", "", "0.020000")
    assert found["files_compared"] == answer_row(answer("equal", identical=False))["files_compared"] == 1


def test_a_row_of_a_whole_run_has_its_attempts_and_the_shift_of_its_clock() -> None:
    found = answer_row(answer("equal", identical=True))
    assert (found["tries"], found["clock_shift_ns"]) == (3, -2_000_000)


def test_the_files_of_a_server_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert len(make_files(tmp_path / name)) == len(SIZES) + 1
    for path in (tmp_path / "a/files").iterdir():
        assert path.read_bytes() == (tmp_path / "b/files" / path.name).read_bytes()


def test_each_client_views_a_page_that_its_server_has(tmp_path: Path) -> None:
    for scene in CASES.values():
        if scene.is_client and not isinstance(scene, GitClient):
            path = scene.prepare(tmp_path, random.Random(1))  # type: ignore[attr-defined]
            assert (tmp_path / "files" / path).exists()


def test_a_client_of_many_pages_gets_a_list_of_pages_that_its_server_has(tmp_path: Path) -> None:
    clients = [scene for scene in CASES.values() if isinstance(scene, ManyPages)]
    assert [scene.name for scene in clients] == ["curl-many", "wget-many"]
    for scene in clients:
        page = scene.prepare(tmp_path, random.Random(1))
        lists = str(tmp_path / "urls")
        assert lists in scene.words_for(tmp_path, f"http://127.0.0.1:9/{page}")
        urls = re.findall(r"http://127\.0\.0\.1:9/([^?]+)\?n=\d+", Path(lists).read_text())
        assert len(urls) == VIEWS
        assert set(urls) == {path.name for path in (tmp_path / "files").iterdir()}


def test_the_server_of_a_kept_alive_client_answers_twice_on_a_connection(tmp_path: Path) -> None:
    assert CASES["wget-many"].handler is KeptAlive  # type: ignore[attr-defined]
    make_files(tmp_path)
    with serving(tmp_path, handler=KeptAlive) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        assert ask(connection, "GET", "/index.html") == 200
        first = connection.sock
        assert first is not None
        assert ask(connection, "GET", "/file-100?n=2") == 200
        assert connection.sock is first
        connection.close()


def test_requests_of_the_programs_role_in_which_bytes_left_are_picked() -> None:
    requests = [
        {"number": number, "role": role, "bytes_out": sent}
        for number, role, sent in ((1, "client", 70), (2, "server", 5), (3, "client", 0), (4, "client", 9))
    ]
    assert [request["number"] for request in answered(requests, "client")] == [1, 4]
    assert [request["number"] for request in answered(requests, "server")] == [2]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_client_of_tls_gets_its_page_over_tls(tmp_path: Path) -> None:
    make_files(tmp_path)
    pem = TLS_CLIENTS[0].pem(tmp_path)
    assert pem == make_pem(tmp_path)
    with serving(tmp_path, pem) as port:
        connection = TLS_SERVERS[0].connection(port)  # type: ignore[attr-defined]
        assert isinstance(connection, http.client.HTTPSConnection)
        assert ask(connection, "GET", "/index.html") == 200
        connection.close()


def test_the_settings_of_a_server_of_tls_name_its_key(tmp_path: Path) -> None:
    for server in TLS_SERVERS:
        settings = server.server.settings  # type: ignore[attr-defined]
        assert "{top}/tls.pem" in settings and settings.count("ssl") >= 2


def test_the_requests_for_one_percent_follow_from_any_record() -> None:
    def recorded(requests: int) -> dict[str, object]:
        return row("equal", kind="server", recorded_calls=14 * requests, calls=280, requests=requests)

    for requests in (1000, 20_000):
        assert needed([recorded(requests)])[-1] == "| nginx | 14.0 | 0 % | 280 | 2000 |  |  |"
    client = recorded(1) | {"case": "curl", "kind": "client"}
    failed = {"case": "redis", "verdict": "failed", "why": "no result"}
    assert len(needed([client, failed])) == 2


def test_the_requests_for_one_percent_count_all_attempts_apart() -> None:
    rows = [
        row("equal", kind="server", recorded_calls=14_000, calls=280, requests=1000, tries=tries, executed_calls=calls)
        for tries, calls in ((1, 280), (3, 840), (1, ""))
    ]
    assert needed(rows)[-1] == "| nginx | 14.0 | 0 % | 280 | 2000 | 280 | 2000 |"
    assert needed(rows[1:2])[-1] == "| nginx | 14.0 | 0 % | 280 | 2000 | 840 | 6000 |"
    # Several attempts of a series that did not count their calls.
    assert needed([rows[2] | {"tries": 3}])[-1] == "| nginx | 14.0 | 0 % | 280 | 2000 |  |  |"


def test_a_server_whose_requests_are_fed_with_many_others_has_no_requests_for_one_percent() -> None:
    def fed(part: float) -> str:
        rows = [
            row("equal", kind="server", recorded_calls=5000, requests=200, request=number, fed=int(part * (number - 1)))
            for number in (101, 201)
        ]
        return needed(rows)[-1]

    assert fed(0.5) == "| nginx | 25.0 | 50 % | 20 | – |  |  |"
    assert fed(0.05) == "| nginx | 25.0 | 5 % | 20 | 80 |  |  |"


def attempted(tries: int, **more: object) -> dict[str, object]:
    """A row of so many attempts, each with 10 calls of the start and 5 of the request."""
    counts = {"tries": tries, "calls": 15, "executed_calls": 15 * tries, "executed_start_calls": 10 * tries}
    return row("equal", kind="server") | counts | more


def test_the_table_of_all_attempts_has_the_servers_that_needed_several() -> None:
    rows = [attempted(1), attempted(3), attempted(1, case="redis"), attempted(2, case="curl", kind="client")]
    assert attempts_table(rows)[2:] == ["| nginx | 2 | 1.5 % | 1.5 % | 3.0 % | 4.5 % |"]


def test_the_starts_of_further_attempts_count_as_spared_by_copies() -> None:
    # Of 60 calls, 40 belong to starts, and two starts remain.
    rows = [attempted(1), attempted(3), attempted(1, case="redis")]
    lines = starts_table(rows)[2:]
    assert lines == ["| nginx | 2 | 4 | – | 33 % |  |  |", "| redis | 1 | 1 | – | 0.00 % |  |  |"]
    # A second execution of threads has a start, too, which is no attempt.
    timed = {"start_calls": 10, "start_s": 0.5, "executed_s": 2.0, "executed_start_s": 1.5}
    again = attempted(2, executed_calls=45, executed_start_calls=30, **timed)
    assert starts_table([again])[-1] == "| nginx | 1 | 2 | – | 44 % | 50 % | 0.50 s |"


def test_each_attempt_in_a_copy_spares_a_start() -> None:
    # Without copies, three attempts would have 45 calls, and take 1.5 s.
    costs = {"start_calls": 10, "start_s": 0.25, "executed_s": 1.0, "executed_start_s": 0.25}
    copied = attempted(3, executed_calls=25, executed_start_calls=10, executed_in_copies=2, **costs)
    assert starts_table([copied])[-1] == "| nginx | 1 | 3 | 2 | 44 % | 33 % | 0.25 s |"


def test_a_series_stands_beside_one_command_for_each_request() -> None:
    alone = [attempted(2, seconds="1.5", request=number) for number in (3, 7)]
    of_all = {"kind": "series", "verdict": "2 of 2", "seconds": "1.2", "executed_start_calls": 10}
    assert series_table([*alone, row("equal") | of_all])[2:] == [
        "| nginx | 2 | 3.0 s | 1.2 s | 0.40 | 2 of 2 | 40 | 10 |"
    ]


def test_the_papers_rows_stand_above_ours() -> None:
    lines = beside_paper(
        [row("equal", kind="server", requests=100), row("different", kind="server", requests=100)], EQUAL
    )
    assert lines[2] == "| the paper | server, row 1 | 482.6M | 381.5K | 0.07 % | – | – | – |"
    assert lines[-2:] == [
        "| the paper | client, row 7 | – | 107 | 0.001 % | – | – | – |",
        "| here | server, nginx | 1000 | 20 | 2.00 % | – | – | 1 of 2 |",
    ]


def test_tables_are_made_again_from_earlier_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = sorted(RUNS.glob("2026-11-23-scenes/*.csv"))
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name} -->\n<!-- end of {name} -->\n" for name in TABLES))
    assert main(["scenes", "--results", *map(str, earlier), "--page", str(page)]) == 0
    assert "| lighttpd | 12229 | 135 (1.10 %) | 5 | 5 | 0 | 0 |" in page.read_text()
    assert "| here | server, lighttpd |" in capsys.readouterr().out
    # Results of later builds begin with a note about the program.
    before = page.read_text()
    for path in earlier:
        (tmp_path / path.name).write_text(f"# backstory 0.1.0, commit 0123\n{path.read_text()}")
    later = [str(tmp_path / path.name) for path in earlier]
    assert main(["scenes", "--results", *later, "--page", str(page)]) == 0
    assert page.read_text() == before


def test_whole_runs_have_a_table_of_their_own_with_each_difference() -> None:
    rows = [row(word, case="lua", kind="whole", request=word) for word in (*EQUAL, "different", "failed")]
    table = whole_table([*rows, row("equal")], EQUAL)
    assert table[2] == "| lua | 5 | 5000 | 1 | 1 | 1 | 0 | 2 | 0 |"
    assert [line.split("|")[1].strip() for line in table[-2:]] == ["lua: different", "lua: failed"]


def test_a_run_that_differs_in_a_duration_alone_is_counted_apart() -> None:
    own = {"case": "cpython", "kind": "whole", "request": "a", "why": "other output"}
    verdicts = [("equal", ""), ("different", "equal-but-volatile"), ("different", "different")]
    table = whole_table([row(strict, **own) | {"volatile_verdict": declared} for strict, declared in verdicts], EQUAL)
    assert table[0].endswith("| unsteady | other, equal with volatile durations |")
    assert table[2] == "| cpython | 3 | 3000 | 1 | 0 | 0 | 0 | 2 | 0 | 1 |"
    assert table[-2:] == [
        "| cpython: a | other output | equal-but-volatile |",
        "| cpython: a | other output | different |",
    ]


def test_the_declared_duration_is_that_of_the_last_line_of_pythons_tests() -> None:
    pattern = next(case.volatile for case in WHOLE if case.name == "cpython")
    assert pattern is not None
    assert re.findall(pattern, "Ran 7 tests in 0.055s\n\nOK\n") == ["in 0.055s"]
    assert not re.findall(pattern, "waiting in 5 places, 0.5s\n")


def test_each_whole_run_has_a_command_and_a_name_of_its_own(tmp_path: Path) -> None:
    for case in WHOLE:
        if case.missing() is None:
            names = [run.name for run in case.runs() if run.words]
            assert len(names) == len(set(names)) > 1


def test_a_server_with_slow_requests_gets_fewer() -> None:
    assert CASES["nginx"].count(20_000) == 20_000
    assert CASES["sshd"].count(20_000) == 60
    assert CASES["sshd"].count(5) == 5
    assert CASES["postgres"].count(1200) == 1200


def test_the_python_application_answers_all_requests_of_its_client(tmp_path: Path) -> None:
    app = CASES["python-app"]
    port = free_port()
    with app.running(tmp_path, port, []):
        app.drive(tmp_path, port, 12, random.Random(18))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        statuses = [ask(connection, "GET", f"/{page}?name=note0") for page in ("note", "sum", "missing")]
        connection.close()
    assert statuses == [200, 200, 404]


def test_a_request_is_made_again_if_the_server_closed_its_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for number in range(2):
                with listener.accept()[0] as connection:
                    connection.recv(4096)
                    if number == 0:
                        continue
                    connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        kept = http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=10)
        assert ask(kept, "GET", "/") == 204
        kept.close()
        thread.join()
