"""`scripts/lint-prose` reads docstrings, and the comments of TypeScript and Svelte sources."""

import subprocess
from pathlib import Path

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint-prose"

WORDS = " ".join(["word"] * 30)


def _lint(directory: Path, **files: str) -> tuple[int, list[str]]:
    """Runs the lint on tracked files with these texts. Returns its status and its findings."""
    subprocess.run(["git", "init", "-q"], cwd=directory, check=True)
    for name, text in files.items():
        (directory / name.replace("_", ".")).write_text(text)
    subprocess.run(["git", "add", "."], cwd=directory, check=True)
    ended = subprocess.run([LINT], cwd=directory, capture_output=True, text=True, check=False)
    return ended.returncode, sorted(ended.stdout.splitlines())


def test_a_bad_docstring_is_found_at_its_line(tmp_path: Path) -> None:
    module = f'"""A module."""\n\n\ndef one():\n    """Returns one.\n\n    {WORDS}.\n    """\n'
    attribute = 'size = 1\n"""What nobody knows."""\n'
    status, found = _lint(tmp_path, a_py=module, b_py=attribute, tool="#!/usr/bin/env python3\n" + attribute)
    assert status == 1
    assert [line.split(": ")[0] for line in found] == ["a.py:7", "a.py:7", "b.py:2", "b.py:2", "tool:3", "tool:3"]
    assert "columns, at most 100" in found[0] and "a sentence of 30 words" in found[1]
    assert "start with a named subject" in found[2] and "'nobody'" in found[3]


def test_a_bad_comment_of_the_page_is_found(tmp_path: Path) -> None:
    script = "/** What is told to nobody. */\nexport const one = 1; // code with who and whom\n"
    view = "<!-- Whom nobody looked at. -->\n<p>What the reader sees is no comment.</p>\n"
    status, found = _lint(tmp_path, a_ts=script, b_svelte=view)
    assert status == 1
    assert {line.split(": ")[0] for line in found} == {"a.ts:1", "b.svelte:1"}


def test_plain_docstrings_and_strings_are_not_findings(tmp_path: Path) -> None:
    module = f'"""Returns the size of a file in bytes."""\n\nTEXT = "{WORDS}"\n'
    assert _lint(tmp_path, a_py=module, b_ts="/** Returns the size. */\n") == (0, [])
