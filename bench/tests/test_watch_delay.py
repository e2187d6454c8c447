"""The command `watch`: when a report is there."""

import argparse
import re
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from backstory_bench import watch_delay
from backstory_bench.report import all_rows


def test_a_report_counts_when_its_line_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report"
    report.write_text('{"rule": 1}\n{"rule"')
    assert watch_delay.reported(report, 1) > 0
    monkeypatch.setattr(watch_delay, "LONGEST", 0.01)
    with pytest.raises(watch_delay.Missing):
        watch_delay.reported(report, 2)


def test_a_row_has_the_median_and_the_longest_delay() -> None:
    assert watch_delay.row(1000, [0.02, 0.03, 0.5], 2_000_000) == "| 1,000 | 2.0 MB | 30 ms | 500 ms |"


def test_each_delay_is_a_row_of_the_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_delay, "delays", lambda *_: ([0.02, 0.5], 2_000_000))
    out = tmp_path / "watch.csv"
    given = {
        "workdir": tmp_path,
        "backstory": "",
        "files": "0,10",
        "rounds": 2,
        "beside": 500,
        "busy": 0,
        "out": str(out),
    }
    assert watch_delay.main_watch_delay(argparse.Namespace(**given)) == 0
    rows = [f"{files},500,0,2000000,{row}" for files in (0, 10) for row in ("0,20.000", "1,500.000")]
    assert out.read_text().split() == ["files_before,beside,busy,log_bytes,round,delay_ms", *rows]


def test_processes_that_compute_end_with_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def kept(words: list[str]) -> subprocess.Popen[bytes]:
        begun.append(begin(words))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", kept)
    with watch_delay.computing(2):
        assert [one.poll() for one in begun] == [None, None]
    assert all(one.returncode is not None for one in begun)


def test_a_recorded_program_that_ends_too_early_is_told(tmp_path: Path) -> None:
    with pytest.raises(watch_delay.Missing, match="ended too early"):
        watch_delay.delays("/bin/false", tmp_path, files=0, rounds=1, beside=0)


def test_the_page_has_the_delays_of_its_results() -> None:
    top = Path(__file__).parents[2]
    page = (top / "docs/howto/hunt.md").read_text()
    results = re.search(r"`(bench/runs/[^`]*watch\*\.csv)`", page)
    assert results is not None
    files = sorted(top.glob(results[1]))
    assert len(files) == 3
    for file in files:
        delays: dict[tuple[int, int], list[float]] = defaultdict(list)
        for row in all_rows(file):
            key = int(row["files_before"]), int(row["log_bytes"])
            delays[key].append(float(row["delay_ms"]))
        for (before, log), found in delays.items():
            middle, longest = statistics.median(found), max(found)
            cells = f" | {before:,} | {log / 1e6:.1f} MB | {middle:.0f} ms | {longest:.0f} ms |"
            assert cells in page, file
            assert longest < 100
