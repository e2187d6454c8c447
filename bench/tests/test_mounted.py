"""The parameters of the paper reach Katcher's Postmark."""

from pathlib import Path

from backstory_bench.mounted import PAPER, katcher_script, larger, places


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


def test_a_missing_program_of_libfuse_says_how_to_get_it(tmp_path: Path) -> None:
    found = {place.name: place for place in places("backstory", str(tmp_path), [])}
    assert "scripts/foreign-sources fuse3" in str(found["passthrough_hp"].missing())
    program = tmp_path / "passthrough_hp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert found["passthrough_hp"].missing() is None
