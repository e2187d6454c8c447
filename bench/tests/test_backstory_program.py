"""Where the program `backstory` is, and which build of it results name."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from backstory_bench import backstory_program, bills, false_alarms
from backstory_bench.cli import main
from backstory_bench.report import all_rows, read_rows, write_rows


def printing(path: Path, version: str) -> Path:
    """Makes a program that prints its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def commit(repository: Path, date: str) -> str:
    """Makes a commit at a date, and returns its hash."""
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", date]
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(words, cwd=repository, env=os.environ | dates, check=True)
    words = ["git", "rev-parse", "HEAD"]
    return subprocess.run(words, cwd=repository, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_build_has_the_commit_from_the_time_at_which_it_was_made(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "bench/backstory_bench").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    first = commit(repository, "2024-01-01 00:00:00 +0000")
    program = printing(repository / "target/release/backstory", "backstory 1.2.3")
    between = 1706745600  # 1 February 2024
    os.utime(program, (between, between))
    assert commit(repository, "2024-03-01 00:00:00 +0000") != first
    said = backstory_program.build(str(program))
    assert re.fullmatch(rf"backstory 1\.2\.3, commit {first}, sha256 [0-9a-f]{{16}}", said)


def test_an_installed_program_is_named_by_its_digest_and_has_no_commit_of_its_own(tmp_path: Path) -> None:
    builds = [backstory_program.build(str(printing(tmp_path / name, f"tool {name}"))) for name in ("1", "2")]
    assert all(said.startswith("tool ") and ", commit " not in said for said in builds)
    digests = [said.rpartition("sha256 ")[2] for said in builds]
    assert len(set(digests)) == 2 and all(len(digest) == 16 for digest in digests)
    assert backstory_program.build(str(tmp_path / "none")) == ""


def test_figures_are_read_with_and_without_the_note_of_their_program(tmp_path: Path) -> None:
    program = printing(tmp_path / "tool", "tool 1")
    rows: list[dict[str, object]] = [{"name": "#1", "value": "2"}, {"name": "#3", "value": "4"}]
    for name, measured in (("old.csv", None), ("new.csv", str(program)), ("gone.csv", str(tmp_path / "gone"))):
        write_rows(tmp_path / name, ["name", "value"], rows, measured)
        assert all_rows(tmp_path / name) == read_rows(tmp_path / name, ["name", "value"]) == rows
    first = [(tmp_path / name).read_text().splitlines()[0] for name in ("old.csv", "new.csv", "gone.csv")]
    assert first == ["name,value", f"# {backstory_program.build(str(program))}", "name,value"]


def test_the_path_of_a_program_holds_in_other_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "made" / "backstory"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert backstory_program.located("made/backstory") == str(program)
    monkeypatch.setenv("BACKSTORY", "made/backstory")
    backstory_program.keep_path()
    monkeypatch.chdir("/")
    assert backstory_program.needed() == str(program)


@pytest.mark.parametrize("command", ["watch", "hunt --dir x", "bills --dir x"])
def test_a_program_that_does_not_exist_is_an_error_that_names_it(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY", "none/from-environment")
    for words, name in [([], "none/from-environment"), (["--backstory", "none/backstory"], "none/backstory")]:
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), *words])
        assert ended.value.code == 2
        assert f"there is no program {name}" in capsys.readouterr().err.replace(str(Path.cwd()) + "/", "")


@pytest.mark.parametrize(("command", "fields"), [("hunt", false_alarms.FIELDS), ("bills", bills.FIELDS)])
def test_a_table_of_earlier_results_needs_no_program(
    command: str,
    fields: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKSTORY", "none/from-environment")
    results = tmp_path / "results.csv"
    results.write_text(f"{','.join(fields)}\n{','.join(['1'] * len(fields))}\n")
    assert main([command, "--results", str(results)]) == 0
    assert "| 1 |" in capsys.readouterr().out
