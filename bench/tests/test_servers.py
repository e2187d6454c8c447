"""The measurement of web servers reads what ab and wrk print, and compares modes of one round."""

import argparse
import os
import signal
import subprocess
from pathlib import Path

import pytest

from backstory_bench import servers, web_load
from backstory_bench.cli import main
from backstory_bench.collectors import COLLECTORS
from backstory_bench.servers import FIELDS, MODES, USUAL, able, log_bytes, shares, summary, words_before
from backstory_bench.web_load import ab_words, parsed_ab, parsed_wrk, wrk_words
from backstory_bench.web_servers import WEB_SERVERS, children

PRINTED = """Complete requests:      1000
Failed requests:        0
Total transferred:      1270000 bytes
Requests per second:    9352.11 [#/sec] (mean)
Time per request:       0.855 [ms] (mean)
Time per request:       0.107 [ms] (mean, across all concurrent requests)
"""
WRK = """Running 2s test @ http://127.0.0.1:8080/small
  8000 requests in 2.00s, 10.00MB read

RESULT {"requests": 8000, "us": 2000000, "bytes": 10160000, "mean_us": 850.5, "failed": 0}
"""


def test_the_rate_the_mean_time_and_the_bytes_are_read() -> None:
    found = {"requests_s": 9352.11, "mean_ms": 0.855, "body_bytes": 1270000.0, "requests": 1000.0}
    assert parsed_ab(PRINTED) == found
    found = {"requests_s": 4000.0, "mean_ms": 0.8505, "body_bytes": 10160000.0, "requests": 8000.0}
    assert parsed_wrk(WRK) == found


def test_failed_requests_and_other_outputs_are_refused() -> None:
    for printed in (PRINTED.replace("Failed requests:        0", "Failed requests:        3"), "ab: no server\n"):
        with pytest.raises(SystemExit):
            parsed_ab(printed)
    for printed in (WRK.replace('"failed": 0', '"failed": 3'), "unable to connect\n"):
        with pytest.raises(SystemExit):
            parsed_wrk(printed)


def test_both_generators_end_connections_unless_they_are_kept_alive() -> None:
    args = argparse.Namespace(requests=5, clients=8, seconds=2, keep_alive=False)
    assert ab_words(args, "URL") == ["ab", "-q", "-n", "5", "-c", "8", "URL"]
    assert wrk_words(args, "URL", Path("s"))[-3:] == ["-H", "Connection: close", "URL"]
    args.keep_alive = True
    assert "-k" in ab_words(args, "URL") and "-H" not in wrk_words(args, "URL", Path("s"))


def rows(rates: list[tuple[str, float]]) -> list[dict[str, object]]:
    return [
        {"server": "nginx", "round": number, "mode": mode, "requests_s": rate, "log_bytes": 5000, "requests": 10}
        for number in range(3)
        for mode, rate in rates
    ]


def test_the_table_has_the_time_of_a_request_relative_to_that_of_the_same_round() -> None:
    lines = summary(rows([("native", 100.0), ("record", 80.0), ("strace", 50.0)]), ["native", "record", "strace"])
    assert lines[-1] == "| nginx | 100 | 1.250 (1.250 to 1.250) | 2.000 (2.000 to 2.000) | 500 | 500 |"


def test_the_log_is_compared_with_the_bytes_that_it_describes() -> None:
    found = [row | {"record_bytes": "", "stored_io_bytes": "", "io_bytes": ""} for row in rows([("native", 1.0)])]
    assert shares(found) == []
    found += [row | {"record_bytes": 1100, "stored_io_bytes": 1000, "io_bytes": 2000} for row in rows([("deep", 1.0)])]
    whole = {"record_bytes": 2100, "stored_io_bytes": 2000, "io_bytes": 2000}
    full = [row | whole for row in rows([("deep-full", 1.0)])]
    assert shares(found + full)[-2:] == [
        "| nginx, deep | 6000 | 3300 | 0.550 | 9.09 % |",
        "| nginx, deep-full | 6000 | 6300 | 1.050 | 4.76 % |",
    ]


def test_each_mode_writes_into_its_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSTORY", "/bin/other")
    assert words_before("native", tmp_path) == []
    assert words_before("strace", tmp_path) == ["strace", "-f", "-s", "65536", "-o", f"{tmp_path}/strace.log"]
    assert words_before("deep-full", tmp_path)[-6:] == ["--contents", "off", "--deep", "--outputs", "full", "--"]
    for mode in set(MODES) - {"native"}:
        assert any(word.startswith(str(tmp_path)) for word in words_before(mode, tmp_path)), mode
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a.deep").write_bytes(b"12345")
    (tmp_path / "index.sqlite").write_bytes(b"123")
    assert (log_bytes("deep", tmp_path), log_bytes("rr", tmp_path)) == (5, 8)
    assert set(USUAL) < set(MODES) and not any(mode.startswith("deep-") for mode in USUAL)
    assert "io_bytes" in FIELDS and all(mode.collector in COLLECTORS for mode in MODES.values())


def test_a_mode_that_cannot_run_says_its_own_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rr = tmp_path / "rr"
    rr.write_text("#!/bin/sh\necho 'Unable to open performance counter' >&2\nexit 1\n")
    rr.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    from backstory_bench.collectors import rr as adapter

    fresh = adapter.and_runs(adapter.needs("rr", "Debian package rr"), adapter._prefix)
    monkeypatch.setitem(servers.COLLECTORS, "rr", adapter.Collector("rr", adapter._prefix, fresh))
    assert able(["native", "rr"]) == ["native"]
    assert "SKIPPED: mode rr: rr record" in (out := capsys.readouterr().out)
    assert "Unable to open performance counter" in out
    monkeypatch.setattr(web_load.Load, "missing", lambda _: None)
    assert main(["servers", "--modes", "nonsense", "--servers", "nginx"]) == 2


def test_the_signal_for_a_server_reaches_the_child_of_its_recorder() -> None:
    # The shell ignores the signal, as strace does with an output file.
    words = ["sh", "-c", "trap '' TERM; (trap - TERM; echo ready; exec sleep 60); echo $?"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "ready\n"
        (child,) = children(recorder.pid)
        os.kill(child, signal.SIGKILL)
        assert recorder.stdout.readline() == "137\n"


def test_each_server_has_settings_of_its_own_directory(tmp_path: Path) -> None:
    for server in WEB_SERVERS.values():
        server.prepare(tmp_path, 8080)
        settings = (tmp_path / "settings").read_text()
        assert f"{tmp_path}/files" in settings
        assert "8080" in settings
        assert "{" not in settings.replace("{\n", "").replace("{ ", "")
