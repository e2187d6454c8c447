"""The measurement of TPC-C reads what go-tpc prints, and compares modes of one round."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from backstory_bench import tpcc
from backstory_bench.cli import _parser
from backstory_bench.database_servers import SERVERS, SETTINGS, DatabaseServer, Recording
from backstory_bench.report import all_rows
from backstory_bench.stats import paired
from backstory_bench.tpcc import PROMISED, TRANSACTIONS, chosen, label, measure, parsed, run_words, summary, watch_words

PRINTED = """Finished
[Summary] DELIVERY - Takes(s): 6.0, Count: 11, TPM: 110.5, Sum(ms): 427.1, Avg(ms): 38.8, 50th(ms): 37.7, Max(ms): 52.4
[Summary] NEW_ORDER - Takes(s): 6.0, Count: 185, TPM: 1854.5, Sum(ms): 2481.0, Avg(ms): 13.4, 50th(ms): 12.6
[Summary] ORDER_STATUS - Takes(s): 5.9, Count: 17, TPM: 171.7, Sum(ms): 182.2, Avg(ms): 10.7, 50th(ms): 9.4
[Summary] PAYMENT - Takes(s): 6.0, Count: 176, TPM: 1766.5, Sum(ms): 2370.3, Avg(ms): 13.5, 50th(ms): 12.6
[Summary] STOCK_LEVEL - Takes(s): 5.9, Count: 19, TPM: 192.1, Sum(ms): 153.2, Avg(ms): 8.1, 50th(ms): 7.9
tpmC: 1854.5, tpmTotal: 4095.3, efficiency: 14420.7%
"""


def test_throughput_and_mean_response_times_are_read() -> None:
    found = parsed(PRINTED, 1)
    assert found["tpmc"] == 1854.5
    assert [found[name] for name in TRANSACTIONS] == [13.4, 13.5, 10.7, 38.8, 8.1]


def test_a_run_with_more_failed_transactions_than_clients_is_refused() -> None:
    failed = "[Summary] PAYMENT_ERR - Takes(s): 6.0, Count: 2, TPM: 10.0, Sum(ms): 1.0, Avg(ms): 1.0\n"
    assert parsed(PRINTED + failed, 2)["PAYMENT"] == 13.5
    with pytest.raises(SystemExit):
        parsed(PRINTED + failed, 1)
    with pytest.raises(SystemExit):
        parsed(PRINTED.replace("tpmC", "none"), 1)


def test_the_means_of_pauses_are_no_response_times() -> None:
    pauses = "[Summary] KEYINGTIME-NEW_ORDER - 18.0s\n[Summary] THINKINGTIME-NEW_ORDER - 11.7s\n"
    assert parsed(PRINTED.replace("tpmC", f"{pauses}tpmC"), 1) == parsed(PRINTED, 1)


def test_a_run_that_was_too_short_for_a_kind_of_transaction_is_refused_by_its_name() -> None:
    lines = [line for line in PRINTED.splitlines(keepends=True) if " DELIVERY " not in line]
    with pytest.raises(SystemExit, match="executed no DELIVERY in its time: choose more --seconds"):
        parsed("".join(lines), 1)


def _row(number: int, mode: str, tpmc: float) -> dict[str, object]:
    return {"round": number, "mode": mode, "tpmc": tpmc, "complete": "yes"} | dict.fromkeys(TRANSACTIONS, 2.0)


def test_a_ratio_compares_two_modes_of_one_round() -> None:
    rows = [_row(0, "rows", 90), _row(0, "native", 100), _row(1, "native", 200), _row(1, "rows", 198)]
    assert paired(rows, "tpmc", "rows", "native") == [0.9, 0.99]


def test_the_table_has_medians_ratios_the_papers_ratio_and_the_complete_records() -> None:
    rows = [
        _row(number, mode, 100 - index)
        for number in range(3)
        for index, mode in enumerate(["native", "statements", "rows"])
    ]
    rows[1]["complete"] = "no"
    lines = summary(rows)
    assert lines[0] == (
        "|  | native | statements | rows | statements / native | rows / native | Story Book / regular |"
    )
    assert lines[2] == ("| tpmC | 100.0 | 99.0 | 98.0 | 0.990 (0.990 to 0.990) | 0.980 (0.980 to 0.980) | 0.972 |")
    assert lines[3].startswith("| NEW_ORDER (ms) |") and lines[3].endswith("| 1.049 |")
    assert lines[-2].endswith("Complete records of statements: 2 of 3.")
    assert lines[-1].endswith("Complete records of rows: 3 of 3.")


def test_a_watch_without_rows_has_a_server_that_streams_none() -> None:
    for server, words in (("postgres", "wal_level"), ("mariadb", "log-bin")):
        settings = {kind: " ".join(SETTINGS[server, kind]) for kind in (Recording.STATEMENTS, Recording.ROWS)}
        assert words not in settings[Recording.STATEMENTS]
        assert words in settings[Recording.ROWS] and settings[Recording.STATEMENTS] in settings[Recording.ROWS]
        command = watch_words(SERVERS[server], 1, Recording.STATEMENTS)
        assert command[command.index("--rows") + 1] == "off"
        assert "on" in watch_words(SERVERS[server], 1, Recording.ROWS)


def test_modes_are_named_in_a_list_that_has_native() -> None:
    assert chosen(PROMISED) == ["native", "statements", "rows"]
    assert chosen("rows-unwatched,native") == ["native", "rows-unwatched"]
    for wrong, message in (("native,watched", "watched is no mode"), ("rows", "native is missing")):
        with pytest.raises(SystemExit, match=message):
            chosen(wrong)


def test_clients_that_pause_are_ten_for_each_warehouse_unless_their_number_is_given() -> None:
    for words, wanted in (
        ([], ["run", "-T", 1, "--time", "60s"]),
        (["--warehouses", "3"], ["run", "-T", 1, "--time", "60s"]),
        (["--warehouses", "3", "--wait"], ["run", "-T", 30, "--time", "60s", "--wait"]),
        (["--threads", "4", "--seconds", "9", "--wait"], ["run", "-T", 4, "--time", "9s", "--wait"]),
    ):
        assert run_words(_parser().parse_args(["tpcc", *words])) == wanted, words
    assert [label("rows", wait) for wait in (False, True)] == ["rows", "rows-wait"]


def test_go_tpc_is_told_to_pause_and_the_server_knows_the_number_of_clients(tmp_path: Path) -> None:
    printed, told, program = (tmp_path / name for name in ("printed", "told", "go-tpc"))
    printed.write_text(PRINTED)
    program.write_text(f"#!/bin/sh\necho \"$@\" >'{told}'\ncat '{printed}'\n")
    program.chmod(0o755)
    (tmp_path / "prepared").mkdir()
    expected: list[int] = []

    @contextmanager
    def running(data: Path, recording: Recording, more: Sequence[str], clients: int) -> Iterator[int]:
        expected.append(clients)
        yield 1

    server = SimpleNamespace(driver="mysql", running=running)
    args = _parser().parse_args(["tpcc", "--wait", "--warehouses", "10", "--go-tpc", str(program)])
    found = measure(args, server, "native", tmp_path / "prepared", tmp_path)  # type: ignore[arg-type]
    assert found["tpmc"] == 1854.5 and expected == [100]
    assert told.read_text().startswith("tpcc run -T 100 --time 60s --wait --warehouses 10 ")


def test_every_mode_has_a_server_with_connections_for_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DatabaseServer, "_program", lambda self, name: name)
    for server in SERVERS.values():
        for recording in Recording:
            commands = [" ".join(server._command(Path("data"), 1, recording, [], clients)) for clients in (1, 100)]
            assert ["max_connections=120" in command for command in commands] == [False, True]


def test_rows_of_clients_that_pause_are_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DatabaseServer, "missing", lambda self: None)
    monkeypatch.setattr(tpcc, "prepare", lambda *_: None)
    monkeypatch.setattr(tpcc, "measure", lambda *_: {"tpmc": 100.0} | dict.fromkeys(TRANSACTIONS, 2.0))
    for words, wanted in (([], {"native", "statements"}), (["--wait"], {"native-wait", "statements-wait"})):
        out = tmp_path / f"{len(words)}.csv"
        directories = ["--workdir", str(tmp_path), "--out", str(out)]
        command = ["tpcc", "--modes", "native,statements", "--rounds", "2", "--go-tpc", sys.executable]
        args = _parser().parse_args([*command, *directories, *words])
        assert args.do(args) == 0
        assert {row["mode"] for row in all_rows(out)} == wanted


def test_measurements_with_and_without_pauses_have_tables_of_their_own() -> None:
    modes = {"native": 100, "rows": 90, "native-wait": 10, "rows-wait": 9.5}
    lines = summary([_row(number, mode, tpmc) for mode, tpmc in modes.items() for number in range(3)])
    tables = [number for number, line in enumerate(lines) if line.startswith("|  |")]
    assert [lines[number] for number in tables] == [
        "|  | native | rows | rows / native | Story Book / regular |",
        "|  | native-wait | rows-wait | rows-wait / native-wait | Story Book / regular |",
    ]
    assert lines[tables[1] - 1] == ""
    assert lines[tables[0] + 2].startswith("| tpmC | 100.0 | 90.0 | 0.900 ")
    assert lines[tables[1] + 2].startswith("| tpmC | 10.0 | 9.5 | 0.950 ")
    assert lines[-1].endswith("Complete records of rows-wait: 3 of 3.")
