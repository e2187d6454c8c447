"""The program `backstory`: `--backstory`, else `$BACKSTORY`, else the one on the path."""

from __future__ import annotations

import argparse
import os
import shutil

VARIABLE = "BACKSTORY"


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
