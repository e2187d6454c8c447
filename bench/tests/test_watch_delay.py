"""The command `watch`: when a report is there."""

from pathlib import Path

import pytest

from backstory_bench import watch_delay


def test_a_report_counts_when_its_line_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report"
    report.write_text('{"rule": 1}\n{"rule"')
    assert watch_delay.reported(report, 1) > 0
    monkeypatch.setattr(watch_delay, "LONGEST", 0.01)
    with pytest.raises(watch_delay.Missing):
        watch_delay.reported(report, 2)


def test_a_row_has_the_median_and_the_longest_delay() -> None:
    assert watch_delay.row(1000, [0.02, 0.03, 0.5], 2_000_000) == "| 1,000 | 2.0 MB | 30 ms | 500 ms |"


def test_a_recorded_program_that_ends_too_early_is_told(tmp_path: Path) -> None:
    with pytest.raises(watch_delay.Missing, match="ended too early"):
        watch_delay.delays("/bin/false", tmp_path, files=0, rounds=1, beside=0)
