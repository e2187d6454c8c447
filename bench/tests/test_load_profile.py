"""A profile of a load has the processes that worked meanwhile, and none without a directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backstory_bench import load_profile


def test_a_profile_names_the_program_that_worked(tmp_path: Path) -> None:
    if reason := load_profile.missing():
        pytest.skip(f"SKIPPED: {reason}")
    # perf has written about the processes that exist, so it samples from now on.
    script = (
        "import os, sys\nfor _ in range(10**4):\n"
        " if os.path.getsize(sys.argv[1]) >= 4096: break\n sum(range(10**6))\nsum(range(10**8))"
    )
    directory = tmp_path / "profiles"
    with load_profile.profiled(directory, "one"):
        subprocess.run([sys.executable, "-c", script, str(directory / "one.data")], check=True)
    assert "python" in (directory / "one.txt").read_text()


def test_a_profile_links_no_file_that_it_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := load_profile.missing():
        pytest.skip(f"SKIPPED: {reason}")
    monkeypatch.setenv("HOME", str(tmp_path))
    with load_profile.profiled(tmp_path, "one"):
        subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert not (tmp_path / ".debug").exists()


def test_a_profiler_that_ends_at_its_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_profile, "recording", lambda _: ["false"])
    # An earlier measurement has left its file.
    (tmp_path / "one.data").touch()
    with pytest.raises(subprocess.CalledProcessError), load_profile.profiled(tmp_path, "one"):
        pytest.fail("the measurement began without a profiler")


def test_without_a_directory_nothing_is_profiled(tmp_path: Path) -> None:
    with load_profile.profiled(None, "one"):
        pass
    assert not list(tmp_path.iterdir())
