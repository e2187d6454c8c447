"""The pytest plug-in. The tests run pytest on a small project and change its sources."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import backstory as bs
import pytest

PROJECT = {
    "shop/__init__.py": "RATE = 2\n",
    "shop/prices.py": """
        from . import RATE

        def price(count):
            return count * RATE

        def unused(count):
            return count

        class Cart:
            def __init__(self):
                self.items = []

            def total(self):
                return sum(price(item) for item in self.items)
        """,
    "shop/text.py": "def shout(text):\n    return text.upper()\n",
    "data/names.txt": "anna\n",
    "tests/conftest.py": """
        import pytest

        @pytest.fixture(scope="session")
        def names():
            with open("data/names.txt") as file:
                return file.read().split()

        @pytest.fixture
        def cart():
            from shop.prices import Cart
            return Cart()
        """,
    "tests/test_prices.py": """
        import os, subprocess, sys
        from shop import prices

        def test_price():
            assert prices.price(3) in (6, 9)

        def test_cart(cart):
            cart.items.append(1)
            assert cart.total() > 0

        def test_file_that_is_missing():
            assert not os.path.exists("data/extra.txt") or True

        def test_child():
            code = "import shop.text; print(shop.text.shout(open('data/child.txt').read()))"
            subprocess.run([sys.executable, "-c", code], check=True)
        """,
    "data/child.txt": "child\n",
    "tests/test_text.py": """
        from shop import text

        def test_shout():
            assert text.shout("a") == "A"

        def test_names(names):
            assert names

        def test_first_name(names):
            assert names[0]

        def test_fails():
            assert False
        """,
}

EVERY = {
    "test_price",
    "test_cart",
    "test_file_that_is_missing",
    "test_child",
    "test_shout",
    "test_names",
    "test_first_name",
    "test_fails",
}


def make(workspace: Any) -> None:
    """Writes the project's files."""
    for name, text in PROJECT.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    Path("pytest.ini").write_text("[pytest]\npythonpath = .\n")


def session(workspace: Any, *options: str) -> tuple[set[str], str]:
    """Runs pytest. Returns the tests that ran, and the output."""
    # The sources of the project must be older than the session.
    command = ["-m", "pytest", "-v", "-p", "backstory.pytest_plugin", *options]
    ended = workspace.python(*command, PYTEST_ADDOPTS="")
    ran = set(re.findall(r"::(\w+) (?:PASSED|FAILED)", ended.stdout))
    return ran, ended.stdout + ended.stderr


def change(name: str, old: str, new: str) -> None:
    """Replaces a text in a file."""
    path = Path(name)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


CHANGES = [
    (
        "a comment",
        "shop/prices.py",
        "    return count * RATE",
        "    # why\n    return count * RATE",
        set(),
    ),
    (
        "a function",
        "shop/prices.py",
        "    return count * RATE",
        "    return count * 1 * RATE",
        {"test_price", "test_cart"},
    ),
    (
        "a function that no test runs",
        "shop/prices.py",
        "    return count\n",
        "    return -count\n",
        set(),
    ),
    (
        "a function of a child",
        "shop/text.py",
        "text.upper()",
        "text.upper() + ''",
        {"test_shout", "test_child"},
    ),
    (
        "the data of a shared fixture",
        "data/names.txt",
        "anna",
        "berta",
        {"test_names", "test_first_name"},
    ),
    ("the data of a child", "data/child.txt", "child", "other", {"test_child"}),
    ("a test", "tests/test_text.py", 'text.shout("a")', 'text.shout("A")', {"test_shout"}),
    (
        "a constant of the package",
        "shop/__init__.py",
        "RATE = 2",
        "RATE = 3",
        EVERY - {"test_fails"},
    ),
    ("a fixture", "tests/conftest.py", "return Cart()", "return (Cart())", set()),
    (
        "a fixture's code",
        "tests/conftest.py",
        "return (Cart())",
        "return Cart() or None",
        {"test_cart"},
    ),
]


def check_changes(workspace: Any, changes: list[tuple[str, str, str, str, set[str]]]) -> None:
    """Makes one change after another, and checks which tests run."""
    make(workspace)
    ran, output = session(workspace, "--backstory")
    assert ran == EVERY, output
    for what, name, old, new, wanted in changes:
        change(name, old, new)
        ran, output = session(workspace, "--backstory-select")
        assert ran == wanted | {"test_fails"}, f"{what}\n{output}"


def test_only_tests_whose_inputs_changed_are_selected(workspace: Any) -> None:
    check_changes(workspace, CHANGES[:1] + CHANGES[3:5])
    Path("data/extra.txt").write_text("now it is there")
    ran, output = session(workspace, "--backstory-select")
    assert ran == {"test_file_that_is_missing", "test_fails"}, output
    assert len(bs.Store().runs(name="pytest")) == 5


@pytest.mark.long
def test_each_kind_of_change_selects_its_tests(workspace: Any) -> None:
    check_changes(workspace, CHANGES)


def test_the_status_and_the_output_are_those_of_pytest(workspace: Any) -> None:
    make(workspace)
    plain = workspace.python("-m", "pytest", "-q", "-p", "no:cacheprovider")
    recorded = workspace.python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "backstory.pytest_plugin",
        "--backstory",
    )
    assert recorded.returncode == plain.returncode == 1
    seconds = re.compile(r"in [0-9.]+s")
    assert seconds.sub("", recorded.stdout) == seconds.sub("", plain.stdout)
    arguments = ["-m", "pytest", "-p", "backstory.pytest_plugin", "--backstory", "nowhere"]
    usage = workspace.python(*arguments)
    assert usage.returncode == 4


def test_each_test_is_an_activity_with_its_inputs(workspace: Any) -> None:
    make(workspace)
    session(workspace, "--backstory")
    run = bs.Store().run("pytest")
    by_id = {row["id"]: row for row in run.processes().to_dicts()}
    readers = [
        by_id[edge["process"]]["argv"]
        for edge in run.edges()
        if edge["path"].endswith("data/names.txt") and edge["how"] == "read"
    ]
    assert readers == [["fixture", "tests::names"]]


def test_pytest_without_the_options_is_left_alone(workspace: Any) -> None:
    make(workspace)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "backstory.pytest_plugin"], check=False
    )
    with pytest.raises(bs.NotFoundError):
        bs.Store()
