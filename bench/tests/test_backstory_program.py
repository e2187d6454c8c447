"""Where the program `backstory` is."""

from pathlib import Path

import pytest

from backstory_bench import backstory_program, bills, false_alarms
from backstory_bench.cli import main


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
