"""Notebooks: the magics, and the kernel that records each cell. The tests run real kernels."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import backstory as bs
import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

KERNEL = Path(__file__).resolve().parents[1] / "kernel.json"


def install_kernel(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs the kernel's description in Jupyter's search path."""
    kernels = workspace.directory.parent / "jupyter"
    described = json.loads(KERNEL.read_text())
    described["argv"][0] = sys.executable
    home = kernels / "kernels" / "backstory-python3"
    home.mkdir(parents=True)
    (home / "kernel.json").write_text(json.dumps(described))
    monkeypatch.setenv("JUPYTER_PATH", str(kernels))
    monkeypatch.setenv("IPYTHONDIR", str(workspace.directory.parent / "ipython"))


def execute(cells: list[str], kernel: str, **options: Any) -> Any:
    """Executes a notebook of these cells, and returns it."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name=kernel, **options)
    client.execute()
    return notebook


def test_each_cell_of_a_recorded_notebook_is_an_activity(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kernel(workspace, monkeypatch)
    monkeypatch.setenv("JPY_SESSION_NAME", "my analysis.ipynb")
    Path("a.csv").write_text("x\n1\n")
    Path("b.csv").write_text("x\n2\n")
    cells = [
        "text = open('a.csv').read()",
        "open('fig.png', 'w').write(text)",
        "other = open('b.csv').read()\nimport os; print(os.getppid() and 'done')",
        "import subprocess; subprocess.run(['cp', 'b.csv', 'copy.csv'], check=True)",
    ]
    notebook = execute(cells, "backstory-python3")
    assert notebook.cells[2].outputs[0].text == "done\n"
    run = bs.Store().run("my-analysis.ipynb")
    processes = run.processes().to_dicts()
    argv = {row["argv"][0]: row["argv"] for row in processes}
    assert argv["In [2]"] == ["In [2]", cells[1]]
    of_cell = {row["id"]: row["argv"][0] for row in processes}
    parents = {row["id"]: row["parent_id"] for row in processes}
    used = {
        (of_cell[edge["process"]], edge["how"], Path(edge["path"]).name)
        for edge in run.edges()
        if edge["path"].startswith(str(workspace.directory)) and edge["how"] in ("read", "write")
    }
    assert {use for use in used if use[0].startswith("In [")} == {
        ("In [1]", "read", "a.csv"),
        ("In [2]", "write", "fig.png"),
        ("In [3]", "read", "b.csv"),
    }
    copier = next(row["id"] for row in processes if row["argv"][0] == "cp")
    assert of_cell[parents[copier]] == "In [4]"
    answer = bs.Store().of("fig.png")
    paths = {Path(path).name for path in answer.files["path"]}
    assert "a.csv" in paths and "b.csv" not in paths
    commands = answer.steps["command"]
    assert any(command.startswith("'In [2]'") for command in commands)
    assert "a.csv" in answer.to_svg() and "fig.png" in answer.to_svg()


@pytest.mark.long
def test_a_recorded_kernel_is_interrupted_as_another(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kernel(workspace, monkeypatch)
    from jupyter_client.manager import start_new_kernel

    for kernel in ("python3", "backstory-python3"):
        manager, client = start_new_kernel(kernel_name=kernel)
        try:
            client.execute("import time; print('begun', flush=True); time.sleep(60)")
            while True:
                message = client.get_iopub_msg(timeout=30)
                if message["msg_type"] == "stream":
                    break
            manager.interrupt_kernel()
            reply = client.get_shell_msg(timeout=30)
            while reply["msg_type"] != "execute_reply":
                reply = client.get_shell_msg(timeout=30)
            assert reply["content"]["ename"] == "KeyboardInterrupt", kernel
        finally:
            client.stop_channels()
            manager.shutdown_kernel()
    assert bs.Store().run("notebook").exit is not None


def test_magics_answer_and_record_in_a_plain_kernel(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(workspace.directory.parent / "ipython"))
    Path("raw").write_text("3\n1\n")
    cells = [
        "%load_ext backstory\nfactor = 2",
        "%%backstory double the numbers\n"
        "numbers = [int(line) * factor for line in open('raw')]\n"
        "open('doubled', 'w').write(str(numbers))",
        "print(numbers)",
        "%backstory of doubled",
        "%backstory runs",
        "%backstory log -n 1",
        "%backstory",
    ]
    notebook = execute(cells, "python3")
    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[2][0].text == "[6, 2]\n"
    html = outputs[3][0].data["text/html"]
    assert "doubled" in html and "<svg" in html and "raw" in html
    assert "double-the-numbers" in outputs[4][0].data["text/html"]
    assert "double-the-numbers" in outputs[5][0].text
    assert "%backstory of PATH" in outputs[6][0].text
    assert os.path.exists("doubled")
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="no recorded run has seen"):
        execute(["%load_ext backstory", "%backstory of nowhere"], "python3")
