"""The measurement of web servers reads what ab prints, and compares modes of one round."""

from pathlib import Path

import pytest

from backstory_bench.servers import parsed, summary
from backstory_bench.web_servers import WEB_SERVERS

PRINTED = """Complete requests:      1000
Failed requests:        0
Total transferred:      1270000 bytes
Requests per second:    9352.11 [#/sec] (mean)
Time per request:       0.855 [ms] (mean)
Time per request:       0.107 [ms] (mean, across all concurrent requests)
"""


def test_the_rate_the_mean_time_and_the_bytes_are_read() -> None:
    assert parsed(PRINTED) == {"requests_s": 9352.11, "mean_ms": 0.855, "body_bytes": 1270000.0}


def test_failed_requests_and_other_outputs_are_refused() -> None:
    for printed in (PRINTED.replace("Failed requests:        0", "Failed requests:        3"), "ab: no server\n"):
        with pytest.raises(SystemExit):
            parsed(printed)


def test_the_table_has_the_time_of_a_request_relative_to_that_of_the_same_round() -> None:
    rates = [("native", 100.0), ("record", 80.0), ("deep", 50.0)]
    rows = [
        {"server": "nginx", "round": number, "mode": mode, "requests_s": rate, "log_bytes": 5000, "requests": 10}
        for number in range(3)
        for mode, rate in rates
    ]
    lines = summary(rows, ["native", "record", "deep"])
    assert lines[-1] == "| nginx | 100 | 1.250 (1.250 to 1.250) | 2.000 (2.000 to 2.000) | 500 |"


def test_each_server_has_settings_of_its_own_directory(tmp_path: Path) -> None:
    for server in WEB_SERVERS.values():
        server.prepare(tmp_path, 8080)
        settings = (tmp_path / "settings").read_text()
        assert f"{tmp_path}/files" in settings
        assert "8080" in settings
        assert "{" not in settings.replace("{\n", "").replace("{ ", "")
