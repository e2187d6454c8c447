"""Finds and runs the program ``backstory``, which the wheel installs with the package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from .errors import BackstoryError, BackstoryWarning, MisuseError, NotFoundError

#: The prefix of the program's lines on standard error.
PREFIX = "backstory: "


def program() -> str:
    """Returns the path of the program.

    The path is ``$BACKSTORY_PROGRAM``, else the program that was installed with this package, else
    the first ``backstory`` on ``PATH``.
    """
    chosen = os.environ.get("BACKSTORY_PROGRAM")
    if chosen:
        return chosen
    # These modules are imported here because few programs that import the package need them.
    import shutil
    import sysconfig

    beside = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    try:
        beside.append(sysconfig.get_path("scripts", f"{os.name}_user"))
    except KeyError:
        pass
    for directory in beside:
        path = os.path.join(directory, "backstory")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("backstory")
    if found is None:
        raise BackstoryError(
            "the program backstory is neither installed beside this Python nor on PATH: "
            "install the package again (pip install --force-reinstall backstory)"
        )
    return found


def ask(arguments: Iterable[str | os.PathLike[str]], accepted: Sequence[int] = (0,)) -> str:
    """Runs the program and returns its output. Its messages on standard error become warnings."""
    import subprocess
    import warnings

    words = [program(), *(os.fspath(argument) for argument in arguments)]
    ended = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        errors="surrogateescape",
    )
    lines = [line.removeprefix(PREFIX) for line in ended.stderr.splitlines() if line]
    if ended.returncode not in accepted:
        failure = MisuseError if ended.returncode == 2 else NotFoundError
        raise failure("; ".join(lines) or f"{words[0]} ended with status {ended.returncode}")
    for line in lines:
        warnings.warn(line, BackstoryWarning, stacklevel=4)
    return ended.stdout
