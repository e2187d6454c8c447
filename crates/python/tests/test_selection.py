"""The selection of tests on a public package, compared with pytest-testmon.

The test breaks a function of the package and runs all tests. A selection must contain every test
that then fails. Needs the network, and pytest-testmon.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
import tarfile
from typing import Any

import pytest

pytestmark = pytest.mark.long

#: A package without dependencies whose source distribution contains its tests.
PACKAGE = "pathspec==0.12.1"
MODULE = "pathspec/pathspec.py"


def failures(output: str) -> set[str]:
    """Returns the tests that did not pass."""
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M))


def ran(output: str) -> set[str]:
    """Returns the tests that ran."""
    return set(re.findall(r"^(\S+::.+?) (?:PASSED|FAILED|ERROR)", output, re.M))


def session(workspace: Any, *options: str) -> str:
    """Runs pytest, and returns its output."""
    words = ["-m", "pytest", "-v", "-rfE", "--tb=no", *options]
    return str(workspace.python(*words, PYTHONPATH=f"{workspace.directory}:{_path()}").stdout)


def _path() -> str:
    import os

    return os.environ.get("PYTHONPATH", "")


def test_no_test_is_missed_on_a_public_package(workspace: Any) -> None:
    pytest.importorskip("testmon")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    fetched = subprocess.run([*command, PACKAGE], capture_output=True, check=False)
    archives = list(workspace.directory.glob("*.tar.gz"))
    if not archives:
        pytest.skip(f"{PACKAGE} could not be fetched: {fetched.stderr.decode()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        # Python has the filter since 3.11.4. Earlier ones ignore the attribute.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(workspace.directory)
    archives[0].unlink()
    [root] = [path for path in workspace.directory.iterdir() if path.is_dir()]
    workspace.directory = root
    for name in ("setup.cfg", "tox.ini", "pytest.ini"):
        (root / name).unlink(missing_ok=True)
    plugins = {
        "backstory": ("-p", "backstory.pytest_plugin", "--backstory-select"),
        "testmon": ("--testmon",),
    }
    everything = ran(session(workspace))
    assert len(everything) > 50
    source = root / MODULE
    clean = source.read_text()
    functions = [node for node in ast.walk(ast.parse(clean)) if isinstance(node, ast.FunctionDef)]
    chosen = random.Random(15).sample(functions, min(6, len(functions)))
    lines = clean.splitlines(keepends=True)
    selected: dict[str, int] = dict.fromkeys(plugins, 0)
    for options in plugins.values():
        assert ran(session(workspace, *options)) == everything
    for node in chosen:
        first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
        broken = [*lines]
        indent = lines[first.lineno - 1][: first.col_offset]
        broken.insert(first.lineno - 1, f"{indent}raise RuntimeError('broken')\n")
        for name, options in plugins.items():
            # Each selection starts from a session on the unbroken source.
            source.write_text(clean)
            session(workspace, *options)
            source.write_text("".join(broken))
            found = ran(session(workspace, *options))
            selected[name] += len(found)
            wanted = failures(session(workspace))
            if name == "backstory":
                assert wanted <= found, f"{node.name}: missed {sorted(wanted - found)[:5]}"
        source.write_text(clean)
    total = len(everything) * len(chosen)
    print(
        f"{len(chosen)} broken functions, {len(everything)} tests; selected of {total}: {selected}"
    )
