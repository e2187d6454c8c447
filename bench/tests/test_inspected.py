"""Postmark's text files, and the table of their inspection."""

import subprocess
from pathlib import Path

from backstory_bench.inspected import sizes, summary
from backstory_bench.mounted import compiled


def test_a_share_of_the_files_is_text_and_each_phase_takes_the_files_of_the_one_before(tmp_path: Path) -> None:
    program, at = compiled(tmp_path), tmp_path / "files"
    at.mkdir()

    def postmark(phases: str) -> None:
        subprocess.run([program, at, "2", "3", "200", "100", "1000", "512", "25", phases], check=True)

    postmark("m")
    made = sizes(at)
    assert len(made) == 50
    assert len(list(at.glob("*/*"))) == 200
    postmark("t")
    changed = [path for path, size in sizes(at).items() if made.get(path, size) != size]
    assert changed
    assert all("x\n" in path.read_text() for path in changed if path.stat().st_size > 64)


def test_the_table_tells_the_processor_time_of_each_inspection() -> None:
    row = {
        "by": "record",
        "text_percent": 5,
        "round": 0,
        "native_s": 1,
        "recorded_s": 2,
        "inspected_files": 4,
        "inspection_cpu_s": 0.1,
    }
    assert summary([row])[-1] == "| 5 % | 1.00 | 2.00 | 4 | 25.0 |"
