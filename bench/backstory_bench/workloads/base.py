"""What every workload instance is to the matrix: a shell text that does its work so many times, and how to tell that it worked.

An instance is prepared once in a directory of its own, cleaned before every run (neither is timed), run, and checks its own result:
exit status, the digest of what it made, its standard output where that is the same every time. A collector that breaks it is caught.
Nothing here measures.
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
    """Something that an instance can't do without."""

    missing: Callable[[], str | None]
    package: str = ""
    """The Debian package that brings it, if one does."""
    projects: tuple[str, ...] = ()
    """The projects of PyPI that bring it, if they do."""
    commands: tuple[tuple[str, ...], ...] = ()
    """What brings it from elsewhere, after its packages are there."""


def program(name: str, package: str = "") -> Need:
    """A program on the path."""
    package = package or name
    hint = f"{name} is not installed (Debian package {package})"
    return Need(lambda: None if find(name) else hint, package)


def built(name: str, relative: str) -> Need:
    """A program in a built tree of `--sources DIR`."""

    def missing() -> str | None:
        tree = source(name)
        if tree.directory is None:
            return tree.reason()
        path = tree.directory / relative
        return None if os.access(path, os.X_OK) else f"{path} is not built (see {tree.origin})"

    return Need(missing)


_PROJECTS = {"sklearn": "scikit-learn", "umap": "umap-learn"}
"""Projects of PyPI that are not called as their module is."""


def module(*names: str) -> Need:
    """Python modules that `python()` can import."""

    def missing() -> str | None:
        code = ";".join(f"import importlib.util as u; assert u.find_spec({n!r}), {n!r}" for n in names)
        done = subprocess.run([python(), "-c", code], capture_output=True, text=True)
        return (
            None if done.returncode == 0 else f"{python()} lacks one of {', '.join(names)} (PyPI; or set BENCH_PYTHON)"
        )

    others = (name for name in names if name not in sys.stdlib_module_names)
    return Need(missing, projects=tuple(_PROJECTS.get(name, name) for name in others))


def python() -> str:
    """The Python that workloads run: `$BENCH_PYTHON`, else our own."""
    return os.environ.get("BENCH_PYTHON") or sys.executable


def find(name: str) -> str | None:
    """A program's path, where Debian keeps daemons too."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _nothing(_: Path) -> None:
    pass


@dataclass(frozen=True)
class Instance:
    """One workload of the matrix."""

    group: str
    """The paper's name of its group, as in its table 4."""
    name: str
    what: str
    body: str
    """Shell text, run in the instance's directory; `$LOOPS` is how often."""
    needs: tuple[Need, ...] = ()
    prepare: Callable[[Path], None] = _nothing
    clean: tuple[str, ...] = ()
    """What is removed before each run."""
    outputs: tuple[str, ...] = ()
    """Files and directories whose contents have to be the native run's."""
    stdout: bool = False
    """Standard output has to be the native run's."""
    before: str = ""
    """Shell text before the loop."""
    after: str = ""
    """Shell text after the loop."""
    repeat: bool = True
    """The body is looped; else it makes use of `$LOOPS` itself."""
    fixed: bool = False
    """Long or self-timed: never looped."""
    figure: str | None = None
    """Pattern of the figure that the program prints (seconds, microseconds …: less is better) instead of its wall time."""
    rate: bool = False
    """The figure is a rate: more is better."""
    truth: Callable[[Path], set[str]] | None = None
    """The files that it reads and writes, as its maker or the program itself states (after a run)."""
    shell: str = "sh"

    @property
    def key(self) -> str:
        """Its name in results: group and instance."""
        return f"{self.group}/{self.name}"

    def lacking(self) -> str | None:
        """Why it can't run here, or None."""
        return next((reason for need in self.needs if (reason := need.missing())), None)

    def script(self, loops: int) -> str:
        """The shell text of `loops` times its work."""
        body = f"n=0; while [ $n -lt $LOOPS ]; do n=$((n+1))\n{self.body}\ndone" if self.repeat else self.body
        return f"set -e\nLOOPS={loops}\n{self.before}\n{body}\n{self.after}\n"

    def command(self, loops: int) -> list[str]:
        """What is put behind a collector."""
        return [self.shell, "-c", self.script(loops)]

    def reset(self, root: Path) -> None:
        """Removes what an earlier run has made."""
        for name in self.clean:
            for path in root.glob(name):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    def digest(self, root: Path, stdout: bytes) -> str:
        """What a run made, to compare with what the native run made."""
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
    """Leaves a free port's number in `root`/port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        (root / "port").write_text(f"{s.getsockname()[1]}\n")


def tree(root: Path, name: str, files: int, size: int, per_directory: int = 100) -> None:
    """A tree of text files, the same every time."""
    for i in range(files):
        directory = root / name / f"d{i // per_directory:03d}"
        directory.mkdir(parents=True, exist_ok=True)
        line = f"line of file {i}: {i * 2654435761 % 4294967296:x} jumps over the lazy dog\n"
        (directory / f"f{i:05d}.txt").write_text((line * (size // len(line) + 1))[:size])


def tree_files(root: Path, *names: str) -> set[str]:
    """All files below the named directories, absolute."""
    return {str(path) for name in names for path in (root / name).rglob("*") if path.is_file()}
