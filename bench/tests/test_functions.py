"""The tables of `backstory-bench functions`."""

import csv
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from backstory_bench import functions, granularity
from backstory_bench.byte_truth.decisions import DECISIONS
from backstory_bench.byte_truth.tables import byte_tables
from backstory_bench.cli import main
from backstory_bench.functions import BYTES_OF_A_CALL, FIELDS, IMPORT, MODES, TESTS, real_pairs, summary
from backstory_bench.granularity import METHODS, beside_paper, paper_slowdown, properties, put_tables
from backstory_bench.real_programs import BEYOND, RealProgram, rate
from backstory_bench.report import write_rows

MODES_OF_BYTES = ("native", "valgrind", "bytes")
TOP = Path(__file__).resolve().parents[2]


def rows(rates: dict[str, float]) -> list[dict[str, object]]:
    """Returns rows with the rate of a mode for every test."""
    return [{"test": test, "mode": mode, "round": 0, "rate": rate} for mode, rate in rates.items() for test in TESTS]


def test_a_rate_is_divided_by_that_of_the_same_compiler() -> None:
    lines = summary(rows({"none": 100, "hooks on": 50, "clang": 200, "sleds off": 200}), 1)
    assert lines[0] == "| Test | none | hooks on | clang | sleds off |"
    assert "| syscall | 1.000 | 0.500 | 1.000 | 1.000 |" in lines
    assert lines[-1] == "| Index, relative | 1.000 | 0.500 | 1.000 | 1.000 |"


def test_a_mode_without_all_tests_has_no_index() -> None:
    some = [row for row in rows({"none": 100, "backstory": 90}) if row["test"] != "syscall" or row["mode"] == "none"]
    lines = summary([*some, {"test": BYTES_OF_A_CALL, "mode": "backstory", "round": 0, "rate": 9.25}], 1)
    assert "| syscall | 1.000 | – |" in lines
    assert lines[-2:] == ["| Index, relative | 1.000 | – |", "| Bytes of a call | – | 9.2 |"]


def test_the_table_of_methods_has_a_slowdown_once_all_were_measured(tmp_path: Path) -> None:
    assert "slowdown" not in properties(rows({"none": 100, "strace": 10}))[0]
    measured = properties(rows({"none": 100, "clang": 200} | dict.fromkeys(METHODS, 50)))
    assert measured[0].endswith("| Median slowdown |")
    assert measured[2].endswith("| 2.00 |")
    assert next(line for line in measured if line.startswith("| sleds ")).endswith("| 4.00 |")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- properties -->\nold\n<!-- end of properties -->\nb\n")
    put_tables(page, {"properties": measured})
    text = page.read_text()
    assert "old" not in text and text.startswith("a\n") and text.endswith("\nb\n") and measured[2] in text
    with pytest.raises(SystemExit):
        put_tables(page, {"other": measured})


def test_a_method_that_ended_nothing_has_no_rate_and_breaks_no_table() -> None:
    some = [{**row, "rate": 0} if row["mode"] == "bytes" else row for row in rows({"none": 100, "bytes": 1})]
    assert summary(some, 1)[-1] == "| Index, relative | 1.000 |"
    assert "| syscall | 0.0074 | 0.610 | 0.016 |" in beside_paper(some)
    assert "slowdown" not in properties(some)[0]


def test_a_slow_method_gets_more_time_until_it_has_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_mode: object, _programs: object, line: str, *_: object) -> tuple[float, float | None]:
        seconds = int(next(word for word in line.split() if word.isdigit()))
        # The words of fstime have its rate in a second, and the others the count of all seconds.
        return (seconds // 40, 0.5) if "looper" in line else (float(seconds > 2), None)

    monkeypatch.setattr(functions, "rate_of", slow)
    given = (MODES["bytes"], Path("pgms"))
    assert functions.counted_rate(*given, "shell-1", 2, Path("."), "b") == (3 / 64, 0.5)
    assert functions.counted_rate(*given, "fcopy-256", 2, Path("."), "b") == (1.0, None)
    with pytest.raises(SystemExit, match="shell-8 ended nothing in 0 s"):
        functions.counted_rate(*given, "shell-8", 0, Path("."), "b")


def test_every_method_is_a_mode() -> None:
    assert set(METHODS) <= set(MODES)


def test_the_import_of_a_log_has_a_line_of_its_own() -> None:
    some = [*rows({"none": 100, "strace": 50}), {"test": IMPORT, "mode": "strace", "round": 0, "rate": 1.5}]
    assert summary(some, 1)[-1] == "| Import of a second, s | – | 1.50 |"
    assert summary(some, 1)[-2] == "| Index, relative | 1.000 | 0.500 |"
    assert beside_paper(some)[-1] == "| Import of a second, s | – | – | – | 1.50 |"


def test_the_papers_columns_stand_beside_ours() -> None:
    assert [round(paper_slowdown(name), 1) for name in ("strace", "llvmtrace", "datatracker")] == [13.5, 2.8, 156.7]
    some = rows({"none": 100, "strace": 50, "clang": 200, "sleds on": 150})
    some += [{"test": "gzip", "mode": mode, "round": 0, "rate": 4} for mode in ("none", "strace")]
    lines = beside_paper(some)
    assert lines[0] == "| Test | strace (paper) | LLVMTrace (paper) | DataTracker (paper) | strace | sleds on |"
    assert "| syscall | 0.0074 | 0.610 | 0.016 | 0.500 | 0.750 |" in lines
    assert lines[-2:] == [
        "| gzip | – | – | – | 1.000 | – |",
        "| Index, relative | 0.074 | 0.358 | 0.0064 | 0.500 | 0.750 |",
    ]
    measured = properties(rows({"none": 100, "clang": 200} | dict.fromkeys(METHODS, 50)))
    assert measured[-1].endswith("| 156.70, index |")


BYTES = [
    ["truth", "sort", "recall", "1.000000"],
    ["truth", "sort", "precision", "0.500000"],
    ["truth", "sort", "file_precision", "0.000300"],
    *(
        ["decisions", "wc", name, v]
        for name, v in (("recall_explicit", "0"), ("recall", "1"), ("file_precision", "0.5"))
    ),
    *(
        ["cost", "sed", f"{mode}_cpu_s_{n}", f"{s}"]
        for n in (0, 1)
        for mode, s in zip(MODES_OF_BYTES, (0.5, 1, 5), strict=True)
    ),
    *(["memory", "sed", f"{part}_bytes", f"{m << 20}"] for part, m in (("program", 4), ("labels", 1), ("sets", 2))),
]


def test_one_command_renews_all_tables_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((TOP / "docs/benchmark/granularity.md").read_text())
    measured = rows({"none": 100, "clang": 200} | dict.fromkeys(METHODS, 50))
    write_rows(tmp_path / "functions.csv", FIELDS, measured)
    with (tmp_path / "bytes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["what", "case", "measure", "value"], *BYTES])
    words = ["--functions", str(tmp_path / "functions.csv"), "--bytes", str(tmp_path / "bytes.csv")]
    assert main(["granularity", *words, "--page", str(page)]) == 0
    text = page.read_text()
    assert "| sort | 100.00 % | 50.00 % | 0.03 % |" in text
    assert "| sed | 0.500 s | 1.000 s | 5.000 s | 10.0 |" in text
    assert "| sed | 4.0 MiB | 1.0 MiB | 2.0 MiB | 0.25 |" in text
    assert "| Median slowdown |" in text and "| DataTracker (paper) | strace |" in text
    assert "| wc | 0.00 % | 100.00 % | – | 50.00 % |" in text
    assert list(byte_tables(BYTES)) == ["truth", "decisions", "cost", "memory"]


def test_a_decision_about_a_line_is_known_from_the_input_alone() -> None:
    for make in DECISIONS:
        case = make(40)
        written = bytes(byte for byte, _ in case.truth)
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "in").write_bytes(case.inputs["in"])
            subprocess.run(case.command, shell=True, cwd=name, check=True)
            assert (Path(name) / "out").read_bytes() == written, case.name
        assert all(origin for byte, origin in case.truth if byte != 10), case.name


def test_a_measurement_of_the_page_needs_unixbench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKSTORY_BENCH_SOURCES", raising=False)
    monkeypatch.setattr(granularity, "measured_rows", lambda *_: pytest.fail("measured"))
    with pytest.raises(SystemExit, match="put the built byte-unixbench"):
        main(["granularity"])


def test_a_real_program_is_compiled_for_calls_of_functions_if_its_tree_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = RealProgram("true", "coreutils", "{program} >out", lambda _: None, "tree", 'echo "$CC" >made', "made")
    monkeypatch.setattr(functions, "BEYOND", {"real": real, "absent": RealProgram("no-such", "p", "x", lambda _: None)})
    monkeypatch.setenv("BACKSTORY_BENCH_SOURCES", str(tmp_path / "sources"))
    found = real_pairs(["real", "absent"], ["none", "hooks on"], "b", tmp_path)
    assert [pair for pair in found] == [("real", "none")]
    said = capsys.readouterr().out
    assert "SKIPPED: real, hooks on: no tree tree in --sources" in said and "no-such is not installed" in said
    (tmp_path / "sources/tree").mkdir(parents=True)
    found = real_pairs(["real"], ["none", "hooks on"], "b", tmp_path)
    assert {pair: Path(program).read_text() for pair, program in found.items()} == {
        ("real", "none"): "gcc\n",
        ("real", "hooks on"): "b cc --compiler=gcc\n",
    }


@pytest.mark.parametrize("test", BEYOND)
def test_each_real_program_does_its_work(test: str) -> None:
    real = BEYOND[test]
    if reason := real.missing():
        pytest.skip(f"SKIPPED: {reason}")
    # The directories of pytest are closed to the user that nginx becomes.
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        work.chmod(0o755)
        assert rate(real, str(real.installed()), [], work, work / "store") > 0
        assert not real.script or os.path.getsize(work / "out") > 0
