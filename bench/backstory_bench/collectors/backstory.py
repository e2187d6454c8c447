"""backstory in its modes. The executable is `$BACKSTORY`, else the one on the path."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from .. import deep_share
from ..backstory_program import chosen
from .base import Collector, Log

MODES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("backstory", ("--contents=off",), "files, processes, channels; recorder and guard; metadata only"),
    ("backstory-lazy", ("--contents=lazy",), "the same, with contents stored lazily"),
    ("backstory-all", ("--contents=all",), "the same, with all contents stored"),
    ("backstory-strict", ("--contents=off", "--guard=strict"), "everything through the kernel"),
    ("backstory-guard-auto", ("--contents=off", "--guard=auto"), "a filter only where a program needs one"),
    ("backstory-lazy-auto", ("--contents=lazy", "--guard=auto"), "the same, with contents stored lazily"),
    ("backstory-guard-off", ("--contents=off", "--guard=off"), "the recorder alone"),
    ("backstory-deep", ("--contents=off", "--deep"), "also what entered and left each process"),
    ("backstory-deep-lazy", ("--contents=lazy", "--deep"), "as backstory-deep, with files by reference"),
    (
        "backstory-deep-full",
        ("--contents=off", "--deep", "--outputs=full"),
        "as backstory-deep, with the bytes that left",
    ),
    ("backstory-functions", ("--contents=off", "--functions=*"), "also functions of Python and of prepared programs"),
    ("backstory-bytes", ("--contents=off", "--bytes"), "also which bytes each byte came from"),
)

ENGINE = "BACKSTORY_BYTE_ENGINE"
"""The variable with the directory of the byte engine."""
BY_NAME_ONLY = {"backstory-deep-lazy", "backstory-deep-full", "backstory-functions", "backstory-bytes"}


def program() -> str:
    """Returns the executable's name or path."""
    return chosen()


@functools.cache
def _help() -> str:
    return subprocess.run([program(), "record", "--help"], capture_output=True, text=True).stdout


def _no_engine() -> str | None:
    """Returns why bytes cannot be followed here."""
    with tempfile.TemporaryDirectory() as store:
        argv = [program(), "refine", "--store", store, "run"]
        said = subprocess.run(argv, capture_output=True, text=True).stderr
    return said.strip().removeprefix("backstory: ") if ENGINE in said else None


def _missing(options: tuple[str, ...]) -> Callable[[], str | None]:
    def check() -> str | None:
        if not shutil.which(program()):
            return f"{program()} is not installed (set BACKSTORY to its path)"
        for option in options:
            name, equals, value = option.lstrip("-").partition("=")
            if not equals and not re.search(rf"^ +--{name}(\s|$)", _help(), re.MULTILINE):
                return f"this backstory has no {option}"
            if option == "--bytes" and (reason := _no_engine()):
                return reason
            if not equals:
                continue
            if not re.search(rf"^ +--{name}[\s=\[]", _help(), re.MULTILINE):
                return f"this backstory has no {option}"
            line = _help().partition(f"--{name} ")[2].partition("\n      --")[0]
            offered = line.partition("possible values:")[2].partition("]")[0]
            if offered and value not in [word.strip() for word in offered.split(",")]:
                return f"this backstory has no {option}"
        return None

    return check


def _prefix(options: tuple[str, ...]) -> Callable[[Path], list[str]]:
    return lambda log: [program(), "record", "--store", str(log / "store"), *options, "--"]


def _figures(options: tuple[str, ...]) -> Callable[[Path], Mapping[str, object]]:
    """Returns the share of input and output in a deep log."""
    if "--deep" not in options:
        return lambda _: {}
    return lambda log: deep_share.fields(deep_share.of_store(log / "store"))


def _ask(log: Path, what: str) -> list[dict[str, object]]:
    argv = [program(), what, "--store", str(log / "store"), "--json"]
    answer = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return list(answer)


USED = {"read", "write", "exec", "delete", "rename", "link"}
"""Accesses by which a file counts as used. Look-ups are left out, as most collectors lack them."""


def read(log: Path) -> Log:
    """Reads the used files and the process starts from the store."""
    files = {str(f["path"]) for f in _ask(log, "files") if USED & set(f["access"])}  # type: ignore[call-overload]
    processes = _ask(log, "processes")
    by_id = {p["id"]: p for p in processes}
    starts = set()
    for p in processes:
        parent = by_id.get(p["parent_id"])
        # A child with the arguments of its parent was forked, and has executed no program.
        if parent is not None and (parent["exec_path"], parent["argv"]) != (p["exec_path"], p["argv"]):
            starts.add((Path(str(parent["exec_path"])).name, Path(str(p["exec_path"])).name))
    return Log(files, starts)


COLLECTORS = [
    Collector(
        name,
        _prefix(options),
        _missing(options),
        what=what,
        origin="this repository: make install",
        read=read,
        figures=_figures(options),
        version=(program(), "--version"),
        by_name_only=name in BY_NAME_ONLY,
        # The environment of a measurement has nothing of the user's.
        environment={ENGINE: os.environ[ENGINE]} if "--bytes" in options and ENGINE in os.environ else {},
    )
    for name, options, what in MODES
]
