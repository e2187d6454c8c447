"""Recording from Python: blocks and functions that run in a child, and the values they return."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import backstory as bs
import pytest
from backstory._marks import _say, is_recorded


def names(run: bs.Run, access: str) -> set[str]:
    """Returns the names of the files in the current directory that a run used in this way."""
    rows = run.files().to_dicts()
    here = str(Path.cwd())
    return {
        Path(row["path"]).name
        for row in rows
        if access in row["access"] and row["path"].startswith(here)
    }


def test_a_command_is_recorded_and_its_failure_is_raised(workspace: Any) -> None:
    import subprocess

    run = bs.run(["sh", "-c", "echo hello > out"], name="a name\nwith blanks")
    assert run.name == "a-name-with-blanks"
    assert names(run, "write") == {"out"}
    with pytest.raises(subprocess.CalledProcessError):
        bs.run(["false"])
    assert bs.run(["false"], check=False).exit == 1


def test_a_block_runs_once_in_a_recorded_child(workspace: Any) -> None:
    Path("raw").write_text("3 1 2")
    numbers = [0]
    factor = 10
    with bs.record(name="block") as recorded:
        import os as system

        text = Path("raw").read_text()
        numbers.extend(int(word) * factor for word in text.split())
        with open("log", "a") as file:
            file.write("once\n")
        del file
        child = system.getpid()
    import os

    assert Path("log").read_text() == "once\n"
    assert numbers == [0, 30, 10, 20]
    assert text == "3 1 2"
    assert child != os.getpid() and system is os
    assert recorded.run is not None
    assert recorded.run.name == "block"
    assert names(recorded.run, "read") == {"raw"}
    assert names(recorded.run, "write") == {"log"}
    assert sys.gettrace() is None


def test_a_variable_that_cannot_come_back_is_named(workspace: Any) -> None:
    with pytest.warns(bs.BackstoryWarning, match="the variable lock stays"):
        with bs.record():
            import threading

            lock = threading.Lock()
            number = 1
    assert number == 1
    assert "lock" not in locals()


def test_the_exception_of_a_block_arrives(workspace: Any) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        with bs.record():
            Path("before").write_text("x")
            numbers = [1, 0]
            numbers[0] /= numbers[1]
    assert "ZeroDivisionError" in str(raised.value.__cause__)
    assert Path("before").exists()
    assert sys.gettrace() is None


def test_a_block_that_cannot_be_moved_is_refused_before_it_runs(workspace: Any) -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(bs.NotObservedError, match="the variable lock"):
        with bs.record():
            with lock:
                Path("made").write_text("x")

    def leaves() -> None:
        with bs.record():
            Path("made").write_text("x")
            return

    with pytest.raises(bs.NotObservedError, match="return cannot leave"):
        leaves()
    with pytest.raises(bs.NotObservedError, match="source of"):
        exec("with bs.record():\n    made = 1\n", {"bs": bs})
    Path("short.py").write_text("import backstory as bs\nwith bs.record(): open('made', 'w')\n")
    assert "on a line below its with statement" in workspace.python("short.py").stderr
    assert not Path("made").exists()


STEPS = """
import backstory as bs

@bs.step
def double(path, factor=2):
    with open(path) as file:
        number = int(file.read()) * factor
    with open("doubled", "w") as file:
        file.write(str(number))
    return number

@bs.step(name="fails")
def fails():
    raise KeyError("gone")
"""


def test_a_step_of_a_module_is_recorded_with_its_result(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("steps.py").write_text(STEPS)
    Path("number").write_text("21")
    monkeypatch.syspath_prepend(str(workspace.directory))
    import steps  # type: ignore[import-not-found]

    try:
        assert steps.double("number") == 42
        assert steps.double("number", factor=3) == 63
        run = steps.double.run
        assert run.name == "double"
        assert {"number", "steps.py"} <= names(run, "read") | {"steps.py"}
        assert "doubled" in names(run, "write")
        answer = bs.Store().of("doubled")
        assert any("double" in command for command in answer.steps["command"])
        with pytest.raises(KeyError, match="gone"):
            steps.fails()
        assert steps.double.__name__ == "double"
    finally:
        del sys.modules["steps"]


MAIN = """
import backstory as bs

OFFSET = 5

def helper(number):
    return number + OFFSET

@bs.step
def shift(path):
    return helper(int(open(path).read()))

if __name__ == "__main__":
    print(shift("number"))
    with bs.record(name="inner") as recorded:
        total = shift("number") + helper(1)
    print(total, recorded.run is None, bs.is_recorded())
"""


def test_a_step_of_a_program_brings_the_functions_that_it_uses(workspace: Any) -> None:
    Path("main.py").write_text(MAIN)
    Path("number").write_text("1")
    alone = workspace.python("main.py")
    assert alone.stdout.splitlines() == ["6", "12 False False"], alone.stderr
    runs = bs.Store().runs()["name"]
    assert sorted(runs) == ["inner", "shift"]


def test_blocks_of_a_recorded_program_are_activities_of_its_run(workspace: Any) -> None:
    Path("main.py").write_text(MAIN)
    Path("number").write_text("1")
    run = bs.run([sys.executable, "main.py"], name="whole")
    processes = run.processes().to_dicts()
    words = [row["argv"][0] for row in processes]
    # A block has a second part after the step inside it.
    assert words.count("shift") == 2 and words.count("inner") == 2
    by_id = {row["id"]: row for row in processes}
    inner = next(row for row in processes if row["argv"][0] == "inner")
    inside = [row for row in processes if row["parent_id"] == inner["id"]]
    assert "shift" in [row["argv"][0] for row in inside]
    assert by_id[inner["parent_id"]]["argv"][1] == "main.py"
    assert len({row["pid"] for row in processes}) == 1
    edges = run.edges().to_dicts()
    readers = {
        by_id[edge["process"]]["argv"][0]
        for edge in edges
        if edge["path"].endswith("/number") and edge["how"] == "read"
    }
    assert readers == {"shift"}
    assert processes[-1]["exit"] == 0


def test_content_flows_to_later_activities_of_a_process_only(workspace: Any) -> None:
    program = """
import backstory as bs
with bs.record(name="first"):
    text = open("a").read()
with bs.record(name="second"):
    open("out", "w").write(text)
with bs.record(name="third"):
    open("b").read()
"""
    Path("main.py").write_text(program)
    Path("a").write_text("a")
    Path("b").write_text("b")
    bs.run([sys.executable, "main.py"])
    answer = bs.Store().of("out")
    paths = {Path(path).name for path in answer.nodes["path"] if path}
    assert "a" in paths and "b" not in paths
    commands = [command.split()[0] for command in answer.steps["command"]]
    assert {"first", "second"} <= set(commands) and "third" not in commands
    script = workspace.text_of("of", "out", "--commands")
    assert "# second " in script and "\nsecond" not in script
    assert {Path(p).name for p in bs.Store().uses("a").nodes["path"] if p} >= {"out"}


def test_a_shell_marks_an_activity(workspace: Any) -> None:
    mark = "true 2>/dev/null < /dev/null/backstory"
    Path("in").write_text("x")
    bs.run(["sh", "-c", f"{mark}/begin/train/epoch%201; read x < in; {mark}/end; echo > out"])
    processes = workspace.json_of("processes")
    marked = [row["argv"] for row in processes if row["marked"]]
    assert marked[0] == ["train", "epoch 1"] and marked[1][0] == "sh"
    by_id = {row["id"]: row["argv"][0] for row in processes}
    edges = bs.Store().run().edges().to_dicts()
    used = {(by_id[edge["process"]], Path(edge["path"]).name) for edge in edges}
    assert ("train", "in") in used and ("sh", "in") not in used
    assert ("sh", "out") in used and ("train", "out") not in used
    assert not [edge for edge in edges if "/dev/null/backstory" in edge["path"]]


def test_a_mark_of_any_length_is_a_path_that_the_kernel_takes() -> None:
    for word in ("é" * 5000, "/" * 5000, "%" * 5000, "\udcff" * 5000, "x"):
        _say(b"begin", [word, word])
    assert not is_recorded()
