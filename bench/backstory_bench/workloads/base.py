"""The interface of a workload of the matrix: a shell script that repeats its work, and a check.

An instance is prepared once in a directory of its own, and cleaned before every run; neither is
timed. After a run it checks the exit status, the digest of the outputs, and the standard output if
that is deterministic. So a collector that breaks the workload is detected. Nothing here measures.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .sources import source


@dataclass(frozen=True)
class Need:
    """A requirement of an instance."""

    missing: Callable[[], str | None]
    package: str = ""
    """The Debian package that contains it, if any."""
    projects: tuple[str, ...] = ()
    """The PyPI projects that contain it, if any."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Commands that install it from elsewhere, after its packages are installed."""


def program(name: str, package: str = "") -> Need:
    """Requires a program on the path."""
    package = package or name
    hint = f"{name} is not installed (Debian package {package})"
    return Need(lambda: None if find(name) else hint, package)


def built(name: str, relative: str) -> Need:
    """Requires a program in a built tree of `--sources DIR`."""

    def missing() -> str | None:
        tree = source(name)
        if tree.directory is None:
            return tree.reason()
        path = tree.directory / relative
        return None if os.access(path, os.X_OK) else f"{path} is not built (see {tree.origin})"

    return Need(missing)


_PROJECTS = {"sklearn": "scikit-learn", "umap": "umap-learn"}
"""PyPI projects whose name differs from that of their module."""


def module(*names: str) -> Need:
    """Requires Python modules that `python()` can import."""

    def missing() -> str | None:
        code = ";".join(f"import importlib.util as u; assert u.find_spec({n!r}), {n!r}" for n in names)
        done = subprocess.run([python(), "-c", code], capture_output=True, text=True)
        return (
            None if done.returncode == 0 else f"{python()} lacks one of {', '.join(names)} (PyPI; or set BENCH_PYTHON)"
        )

    others = (name for name in names if name not in sys.stdlib_module_names)
    return Need(missing, projects=tuple(_PROJECTS.get(name, name) for name in others))


def python() -> str:
    """Returns the Python that runs the workloads: `$BENCH_PYTHON`, else this one."""
    return os.environ.get("BENCH_PYTHON") or sys.executable


def find(name: str) -> str | None:
    """Returns a program's path. Searches the directories of daemons, too."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _nothing(_: Path) -> None:
    pass


@dataclass(frozen=True)
class Instance:
    """One workload of the matrix."""

    group: str
    """The name of its group in table 4 of the paper."""
    name: str
    what: str
    body: str
    """The shell script, run in the instance's directory. `$LOOPS` is the number of repetitions."""
    needs: tuple[Need, ...] = ()
    prepare: Callable[[Path], None] = _nothing
    clean: tuple[str, ...] = ()
    """Files and directories to remove before each run."""
    outputs: tuple[str, ...] = ()
    """Files and directories whose contents must equal those of the native run."""
    stdout: bool = False
    """True if the standard output must equal that of the native run."""
    before: str = ""
    """Shell commands before the loop."""
    after: str = ""
    """Shell commands after the loop."""
    repeat: bool = True
    """True if `body` is put into a loop. Otherwise it uses `$LOOPS` itself."""
    fixed: bool = False
    """True if the workload is long, or measures its own time, so that it is never looped."""
    figure: str | None = None
    """A pattern for the figure that the program prints (in seconds, for example).

    The figure replaces the wall time. Smaller is better.
    """
    rate: bool = False
    """True if the figure is a rate, so that larger is better."""
    truth: Callable[[Path], set[str]] | None = None
    """Returns the files that a run read and wrote, as the program itself or its author states."""
    shell: str = "sh"

    @property
    def key(self) -> str:
        """The name in results: group and instance."""
        return f"{self.group}/{self.name}"

    def lacking(self) -> str | None:
        """Returns the reason why the instance cannot run here, or `None`."""
        return next((reason for need in self.needs if (reason := need.missing())), None)

    def script(self, loops: int) -> str:
        """Returns the shell script that does the work `loops` times."""
        body = f"n=0; while [ $n -lt $LOOPS ]; do n=$((n+1))\n{self.body}\ndone" if self.repeat else self.body
        return f"set -e\nLOOPS={loops}\n{self.before}\n{body}\n{self.after}\n"

    def command(self, loops: int) -> list[str]:
        """Returns the command line that a collector runs."""
        return [self.shell, "-c", self.script(loops)]

    def reset(self, root: Path) -> None:
        """Removes the outputs of an earlier run."""
        for name in self.clean:
            for path in root.glob(name):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    def digest(self, root: Path, stdout: bytes) -> str:
        """Returns a digest of the outputs, to compare with that of the native run."""
        whole = hashlib.sha256(stdout if self.stdout else b"")
        for name in self.outputs:
            for path in sorted([root / name, *(root / name).rglob("*")]):
                whole.update(os.fsencode(path.relative_to(root)) + b"\0")
                if path.is_symlink():
                    whole.update(os.fsencode(os.readlink(path)))
                elif path.is_file():
                    whole.update(path.read_bytes())
                elif not path.exists():
                    whole.update(b"missing")
        return whole.hexdigest()[:32]


def free_port(root: Path) -> None:
    """Writes the number of a free port to the file `port` in `root`."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        (root / "port").write_text(f"{s.getsockname()[1]}\n")


def tree(root: Path, name: str, files: int, size: int, per_directory: int = 100) -> None:
    """Makes a deterministic tree of text files."""
    for i in range(files):
        directory = root / name / f"d{i // per_directory:03d}"
        directory.mkdir(parents=True, exist_ok=True)
        line = f"line of file {i}: {i * 2654435761 % 4294967296:x} jumps over the lazy dog\n"
        (directory / f"f{i:05d}.txt").write_text((line * (size // len(line) + 1))[:size])


def tree_files(root: Path, *names: str) -> set[str]:
    """Returns the absolute paths of all files below the named directories."""
    return {str(path) for name in names for path in (root / name).rglob("*") if path.is_file()}
