"""Calls of Python functions, by ``sys.monitoring`` since Python 3.12, and by ``sys.setprofile``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, Workspace

PACKAGE = ROOT / "crates" / "python"
SCRIPT = """
def write_table(path):
    with open(path, "w") as out:
        out.write("1")

class Plot:
    def draw(self):
        open("drawn.csv", "w").close()
        raise ValueError

def lines():
    yield 1
    open("yielded.csv", "w").close()

write_table("table.csv")
try:
    Plot().draw()
except ValueError:
    list(lines())
open("main.csv", "w").close()
"""


def site_of(python: str, base: Path) -> Path:
    """Installs what finds the functions for a Python, as the package does, and returns where."""
    code = "import site; print(site.getusersitepackages())"
    asked = subprocess.run(
        [python, "-c", code], env={"PYTHONUSERBASE": str(base)}, capture_output=True, check=True
    )
    site = Path(asked.stdout.decode().strip())
    (site / "backstory").mkdir(parents=True)
    (site / "backstory" / "__init__.py").touch()
    shutil.copy(PACKAGE / "python" / "backstory" / "functions.py", site / "backstory")
    shutil.copy(PACKAGE / "backstory_functions.pth", site)
    return site


def test_the_function_that_made_a_file_is_named(workspace: Workspace, tmp_path: Path) -> None:
    # A virtual environment has no directory of the user.
    python = f"{sys.base_prefix}/bin/python3.{sys.version_info.minor}"
    site_of(python, tmp_path / "base")
    (workspace.directory / "plot.py").write_text(SCRIPT)
    # Before Python 3.11, code has no qualified name.
    draw = "Plot.draw" if sys.version_info >= (3, 11) else "draw"
    patterns = [
        word
        for name in ("write_*", draw, "lines", "absent")
        for word in ("--functions", f"plot:{name}")
    ]
    command = [workspace.program, "record", "--store", str(workspace.store), *patterns, "--"]
    ended = subprocess.run(
        [*command, "env", f"PYTHONUSERBASE={tmp_path / 'base'}", python, "plot.py"],
        capture_output=True,
        text=True,
        cwd=workspace.directory,
        check=True,
    )
    assert [line.split(" recorded nothing")[0] for line in ended.stderr.splitlines()] == [
        "backstory: --functions plot:absent"
    ]
    for file, function in (
        ("table.csv", "write_table"),
        ("drawn.csv", draw),
        ("yielded.csv", "lines"),
    ):
        answer = workspace.text_of("of", file)
        assert f"{function}() in plot.py:" in answer, answer
    main = workspace.text_of("of", "main.csv")
    assert "plot.py:" not in main, main
