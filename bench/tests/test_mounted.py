"""The parameters of the paper reach Katcher's Postmark, and a file system that hangs is left."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from backstory_bench.mounted import (
    HUNG,
    PAPER,
    HungError,
    Place,
    katcher_script,
    larger,
    opened,
    places,
    profile_name,
    selected,
    summary,
)


def test_a_small_part_has_no_transactions_that_katcher_divides_by_zero() -> None:
    script = katcher_script(Path("/at"), 0, PAPER | {"transactions": 30})
    assert "set transactions 10\n" in script


def _settings(number: int) -> dict[str, str]:
    lines = katcher_script(Path("/at/m0"), number, PAPER).splitlines()
    assert lines[-2:] == ["run", "quit"]
    return dict(line.removeprefix("set ").split(" ", 1) for line in lines[:-2])


def test_the_processes_together_have_the_files_and_transactions_of_the_paper() -> None:
    found = [_settings(number) for number in range(PAPER["threads"])]
    assert sum(int(each["number"]) for each in found) == 9000
    assert sum(int(each["transactions"]) for each in found) == 3600
    assert 860 <= sum(int(each["subdirectories"]) for each in found) <= 890
    smallest, largest = map(int, found[0]["size"].split())
    assert (smallest + largest) // 2 == 190 << 10
    assert len({each["seed"] for each in found}) == 30


def test_larger_files_have_the_bytes_of_the_paper() -> None:
    size = larger(PAPER, 100)
    assert (size["files"], size["mean"]) == (90, 19000 << 10)
    assert size["files"] * size["mean"] == PAPER["files"] * PAPER["mean"]
    assert size["transactions"] * size["mean"] == PAPER["transactions"] * PAPER["mean"]
    assert larger(PAPER, 3000)["threads"] == 3


def test_places_are_chosen_by_name_and_each_has_a_profile_of_its_own() -> None:
    known = places("backstory", "/libfuse", [])
    assert selected(None, known) == known
    chosen = selected("passthrough_ll, the directory", known)
    assert [place.name for place in chosen] == ["passthrough_ll", "the directory"]
    with pytest.raises(SystemExit, match="no place 'nowhere'; the places are: "):
        selected("nowhere", known)
    assert len({profile_name(place) for place in known}) == len(known)


def test_a_missing_program_of_libfuse_says_how_to_get_it(tmp_path: Path) -> None:
    found = {place.name: place for place in places("backstory", str(tmp_path), [])}
    assert "scripts/foreign-sources fuse3" in str(found["passthrough_hp"].missing())
    program = tmp_path / "passthrough_hp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert found["passthrough_hp"].missing() is None


def _mounts(top: Path) -> bool:
    # Root in a container may have the device, but no right to mount.
    behind, at = top / "first", top / "mounted"
    behind.mkdir()
    at.mkdir()
    done = subprocess.run(["bindfs", behind, at], check=False, capture_output=True).returncode == 0
    if done:
        subprocess.run(["umount", at], check=True)
    return done


@pytest.mark.skipif(
    shutil.which("bindfs") is None or not os.path.exists("/dev/fuse") or os.geteuid() != 0,
    reason="needs bindfs, /dev/fuse and root",
)
def test_a_file_system_that_hangs_is_killed_and_said_to_hang(tmp_path: Path) -> None:
    if not _mounts(tmp_path):
        pytest.skip("cannot mount here")
    place = Place("bindfs", ("bindfs", "-f", "{behind}", "{at}"))
    with pytest.raises(HungError), opened(place, tmp_path, 0.1) as at:
        deadline = time.monotonic() + 60
        # The program of a measurement fails as soon as the mount has no server.
        while time.monotonic() < deadline:
            subprocess.run(["ls", at], check=True, capture_output=True)
    assert not os.path.ismount(at)


def test_a_place_that_hung_has_the_median_of_the_other_rounds() -> None:
    times = [("the directory", "2", "1"), ("hp", "3", "2"), ("hp", HUNG, HUNG), ("ll", HUNG, HUNG)]
    lines = summary([dict(zip(("place", "all_s", "transactions_s"), each, strict=True)) for each in times])
    assert lines[2:] == [
        "| the directory | 2.00 | 1.00 | 1.00 |",
        "| hp (hung in 1 of 2 rounds) | 3.00 | 1.50 | 2.00 |",
        "| ll (hung in 1 of 1 rounds) |  |  |  |",
    ]
