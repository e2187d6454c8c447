"""The command `requests`: what it counts in an output of strace, and its table."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from backstory_bench.preserve_requests import (
    COUNTS,
    FIELDS,
    LAZY,
    NATIVE,
    OFF,
    REPLACEMENTS,
    WALL,
    counted,
    summary,
    waits,
)

LOG = """\
71 getpriority(0x62736d67 /* PRIO_??? */, 4) = 0
72 getpriority(0x62736d67 /* PRIO_??? */, 4 <unfinished ...>
71 linkat(AT_FDCWD, "src/f1", AT_FDCWD, "/s/runs/abc.kept/0", 0) = 0
70 linkat(AT_FDCWD, "/proc/self/fd/9", 12, "1", AT_SYMLINK_FOLLOW) = 0
72 <... getpriority resumed>)             = 0
71 linkat(AT_FDCWD, "src/f2", AT_FDCWD, "/s/runs/abc.kept/2", 0) = -1 EXDEV (Invalid cross-device link)
71 linkat(AT_FDCWD, "src/f3", AT_FDCWD, "src/f4", 0) = 0
71 linkat(5, "f5", AT_FDCWD, "/s/runs/abc.kept/3", 0) = 0
71 getpriority(0x62736d67 /* PRIO_??? */, 3) = 0
71 getpriority(PRIO_PROCESS, 4)            = 20
"""


def test_a_request_counts_once_and_a_link_only_if_the_process_made_it() -> None:
    assert counted(LOG) == (2, 2)


def test_a_command_reads_the_files_before_it_changes_them(tmp_path: Path) -> None:
    if shutil.which("tar") is None:
        pytest.skip("SKIPPED: tar is not installed")
    for name in ("rm", "untar", "overwrite"):
        replacement, root = REPLACEMENTS[name], tmp_path / name
        (root / "tree").mkdir(parents=True)
        (root / "tree" / "f").write_text("text\n")
        replacement.reset(root)
        assert (root / replacement.tree / "f").read_text() == "text\n"
        before = (root / replacement.tree / "f").stat().st_ino
        words = replacement.command()
        read, _, change = words[2].partition(" && ")
        assert "-exec cat {} +" in read and change == replacement.change
        subprocess.run(words, cwd=root, check=True)
        file = root / replacement.tree / "f"
        assert file.exists() == (name != "rm")
        if name == "overwrite":
            assert file.stat().st_ino == before
        replacement.reset(root)
        assert file.exists()


def wall(mode: str, number: int, value: float) -> dict[str, object]:
    return dict(zip(FIELDS, ["rm", WALL, mode, number, value], strict=True))


def test_the_time_of_a_request_is_what_contents_add_in_a_round() -> None:
    walls = [wall(OFF, 0, 1.0), wall(LAZY, 0, 1.1), wall(OFF, 1, 2.0), wall(LAZY, 1, 2.3), wall(NATIVE, 0, 1)]
    walls.append(wall(NATIVE, 1, 1))
    assert waits(walls, 1000) == "200 (100 to 300)"
    assert waits(walls, 0) == ""


def test_the_table_has_the_counts_and_the_ratios_of_one_round() -> None:
    counts = dict(zip(COUNTS, (5000, 50, 12, 4988, 5000), strict=True))
    rows = [dict(zip(FIELDS, ["rm", what, LAZY, 0, value], strict=True)) for what, value in counts.items()]
    rows += [wall(mode, 0, value) for mode, value in ((NATIVE, 0.5), (OFF, 1.0), (LAZY, 1.5))]
    assert summary(rows)[2:] == [
        "| `rm -r` | 5,000 | 50 | 12 | 4,988 | 5,000 | 0.500 | 2.00 (2.00 to 2.00) | 1.50 (1.50 to 1.50) "
        "| 100 (100 to 100) |"
    ]
