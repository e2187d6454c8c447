"""The program `backstory`: `--backstory`, else `$BACKSTORY`, else the one on the path.

All results name the measured program in the same words, which `build` returns.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

VARIABLE = "BACKSTORY"
DIGITS = 16
"""Hexadecimal digits of the program's digest that results have."""
PATIENCE_S = 20.0


def chosen() -> str:
    """Returns the program, which may not exist."""
    return os.environ.get(VARIABLE, "backstory")


def needed() -> str:
    """Returns the absolute path of the program."""
    try:
        return located(chosen())
    except argparse.ArgumentTypeError as error:
        raise SystemExit(f"backstory-bench: {error}") from None


def located(text: str) -> str:
    """Returns the absolute path of a program: commands begin in other directories.

    Raises
    ------
    argparse.ArgumentTypeError
        There is no such program.
    """
    found = shutil.which(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"there is no program {text}; --backstory or ${VARIABLE} names it")
    return os.path.abspath(found)


def keep_path() -> None:
    """Makes the path in `$BACKSTORY` absolute, for commands that begin in other directories."""
    if "/" in chosen():
        os.environ[VARIABLE] = os.path.abspath(chosen())


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--backstory` to a command. Without it, `complete` finds the program."""
    parser.add_argument("--backstory", type=located, help="the program")


def complete(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Finds the program for a command without `--backstory`. Earlier results need none."""
    if getattr(args, "backstory", "") is not None or getattr(args, "results", None):
        return
    try:
        args.backstory = located(chosen())
    except argparse.ArgumentTypeError as error:
        parser.error(f"argument --backstory: {error}")


@functools.cache
def build(program: str) -> str:
    """Returns the version, the commit and the digest of a program; empty if it does not exist.

    The program prints its version only, which many builds share. The commit is the one that the
    repository around the program was at when the program was made. A program elsewhere, as an
    installed one, has the commit of this repository at that time, and the words say so.
    """
    found = shutil.which(program)
    if found is None:
        return ""
    path = Path(found).resolve()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    parts = [_version(path), _commit(path), f"sha256 {digest[:DIGITS]}"]
    return ", ".join(part for part in parts if part)


def _version(path: Path) -> str:
    """Returns the first line that a program prints about its version, or the program's name."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return path.name
    return done.stdout.partition("\n")[0].strip() or path.name


def _commit(path: Path) -> str:
    """Returns the words about the commit of a program; empty if git knows none of that time."""
    made = path.stat().st_mtime
    here = _top(path.parent)
    if here is not None and (here / "bench" / __package__).is_dir():
        commit = _commit_at(here, made)
        return commit and f"commit {commit}"
    own = _top(Path(__file__).parent)
    commit = _commit_at(own, made) if own is not None else ""
    return commit and f"made while the benchmark's repository was at commit {commit}"


def _git(directory: Path, *words: str) -> str:
    """Returns the output of git; empty if it fails or warns, as about a time before its log."""
    try:
        done = subprocess.run(["git", "-C", str(directory), *words], capture_output=True, text=True)
    except OSError:
        return ""
    return "" if done.returncode or done.stderr else done.stdout.strip()


def _top(directory: Path) -> Path | None:
    """Returns the top of the git tree that contains a directory."""
    found = _git(directory, "rev-parse", "--show-toplevel")
    return Path(found) if found else None


def _commit_at(top: Path, seconds: float) -> str:
    """Returns the commit that a git tree was at. `seconds`: since 1970."""
    return _git(top, "rev-parse", time.strftime("HEAD@{%Y-%m-%d %H:%M:%S +0000}", time.gmtime(seconds)))
