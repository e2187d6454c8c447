"""The commands of the project's promises (design, section 7), on generated files only.

A workload is prepared once. Before every run it is reset, which is not timed. After every run it
checks its own result, to detect a collector that breaks it.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from . import notified
from .measure import Cost
from .workload import Workload


def _nothing(_: Path) -> None:
    pass


def _exit_zero(_: Path, cost: Cost) -> str | None:
    return None if cost.status == 0 else f"exit status {cost.status}: {cost.output[-300:].decode(errors='replace')}"


def _remove(*names: str) -> Callable[[Path], None]:
    def reset(root: Path) -> None:
        for name in names:
            shutil.rmtree(root / name, ignore_errors=True)
            (root / name).unlink(missing_ok=True)

    return reset


def _tree(root: Path, name: str, files: int, per_directory: int, size: int) -> None:
    """Makes a deterministic tree of small text files."""
    for i in range(files):
        directory = root / name / f"d{i // per_directory:03d}"
        if i % per_directory == 0:
            directory.mkdir(parents=True, exist_ok=True)
        line = f"line of file {i}: the quick brown fox jumps over the lazy dog\n"
        (directory / f"f{i:05d}.txt").write_text((line * (size // len(line) + 1))[:size])


def _holds(name: str, files: int) -> Callable[[Path, Cost], str | None]:
    def check(root: Path, cost: Cost) -> str | None:
        found = sum(1 for p in (root / name).rglob("*.txt") if p.is_file())
        return _exit_zero(root, cost) or (None if found == files else f"{name} holds {found} of {files} files")

    return check


@functools.cache
def _python() -> str:
    """Returns a Python that has numpy: the distribution's, else this one."""
    for candidate in ("/usr/bin/python3", sys.executable):
        if subprocess.run([candidate, "-c", "import numpy"], capture_output=True).returncode == 0:
            return candidate
    return sys.executable


SOURCES = 60


def _make_project(root: Path) -> None:
    project = root / "project"
    project.mkdir()
    names = [f"unit{i:02d}" for i in range(SOURCES)]
    for i, name in enumerate(names):
        (project / f"{name}.h").write_text(f"#pragma once\n#include <stddef.h>\nint {name}(const char *s, size_t n);\n")
        includes = "".join(f'#include "{names[(i + k) % SOURCES]}.h"\n' for k in range(8))
        body = "".join(
            f"static int step{k}(const char *s, size_t n) {{ int h = {k};"
            f" for (size_t i = 0; i < n; i++) {{ h = h * 31 + s[i] + (h >> {k % 7 + 1}); if (h % {k + 3} == 0) h ^= {i}; }}"
            f" return h; }}\n"
            for k in range(12)
        )
        calls = " + ".join(f"step{k}(s, n)" for k in range(12))
        (project / f"{name}.c").write_text(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n#include <errno.h>\n"
            f"{includes}{body}int {name}(const char *s, size_t n) {{ return {calls}; }}\n"
        )
    uses = "".join(f'#include "{n}.h"\n' for n in names)
    total = " + ".join(f'{n}("abc", 3)' for n in names)
    (project / "main.c").write_text(
        f'#include <stdio.h>\n{uses}int main(void) {{ printf("%d\\n", {total}); return 0; }}\n'
    )
    (project / "Makefile").write_text(
        "OBJ = $(patsubst %.c,%.o,$(wildcard *.c))\nCFLAGS = -O1\nprog: $(OBJ)\n\t$(CC) -o $@ $(OBJ)\n"
        "clean:\n\trm -f prog *.o\n"
    )


def _clean_project(root: Path) -> None:
    for path in (*root.glob("project/*.o"), root / "project/prog"):
        path.unlink(missing_ok=True)


def _built(root: Path, cost: Cost) -> str | None:
    return _exit_zero(root, cost) or (None if (root / "project/prog").exists() else "make built no program")


def _repository(root: Path) -> None:
    repo = root / "origin"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    stream = ["reset refs/heads/main\n"]
    for i in range(2000):
        text = "".join(f"line {k} as of commit {i if k % 7 == i % 7 else 0}\n" for k in range(60))
        stream.append(
            f"commit refs/heads/main\ncommitter Bench <bench@localhost> {1700000000 + i} +0000\n"
            f"data {len(f'commit {i}')}\ncommit {i}\n"
            f"M 100644 inline src/f{i % 600:03d}.txt\ndata {len(text)}\n{text}\n"
        )
    git = ["git", "-C", str(repo)]
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "main"], check=True)


def _micro(root: Path) -> None:
    source = resources.files(__package__).joinpath("micro.c").read_text()
    (root / "micro.c").write_text(source)
    subprocess.run(["gcc", "-O2", "-o", str(root / "micro"), str(root / "micro.c")], check=True)
    (root / "one").write_text("x" * 4096)


def _micro_load(call: str, first: float | None, goal: float | None) -> Workload:
    def check(root: Path, cost: Cost) -> str | None:
        try:
            float(cost.output)
        except ValueError:
            return f"printed {cost.output[:80]!r} instead of ns per call"
        return _exit_zero(root, cost)

    return Workload(
        f"call-{call}",
        f"{call}, ns per call",
        lambda r: [str(r / "micro"), call, str(r / "one")],
        _micro,
        _nothing,
        check,
        first,
        goal,
        per_call=True,
    )


TRUE_LOOP = "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done"

CAT_LOOP = "i=0; while [ $i -lt 500 ]; do /bin/cat file; i=$((i+1)); done"
"""Each program opens a file, so its process has a part of the log in every mode."""

LOADER = """#include <dlfcn.h>

int main(void) {
	void *library = dlopen("libm.so.6", RTLD_NOW);
	return library && dlsym(library, "cos") ? 0 : 1;
}
"""
LOADER_LOOP = "i=0; while [ $i -lt 50 ]; do ./loader || exit; i=$((i+1)); done"


def _loader(root: Path) -> None:
    (root / "loader.c").write_text(LOADER)
    # Before glibc 2.34, the functions are in a library of their own.
    subprocess.run(["gcc", "-O2", "-o", str(root / "loader"), str(root / "loader.c"), "-ldl"], check=True)


WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload(
            "make",
            f"make of a C project of {SOURCES} files",
            lambda r: ["make", "-s", "-C", "project"],
            _make_project,
            _clean_project,
            _built,
            1.03,
            1.02,
        ),
        Workload(
            "tar",
            "tar and untar of 5,000 files, three times",
            lambda r: [
                "sh",
                "-c",
                "for i in 1 2 3; do mkdir out$i && tar cf all.tar tree && tar xf all.tar -C out$i || exit; done",
            ],
            lambda r: _tree(r, "tree", 5000, 100, 600),
            _remove("out1", "out2", "out3", "all.tar"),
            _holds("out3/tree", 5000),
            1.07,
            1.05,
        ),
        Workload(
            "cp",
            "cp -a of 5,000 small files, three times",
            lambda r: ["sh", "-c", "for i in 1 2 3; do cp -a tree copy$i || exit; done"],
            lambda r: _tree(r, "tree", 5000, 100, 600),
            _remove("copy1", "copy2", "copy3"),
            _holds("copy3", 5000),
            1.10,
            1.07,
        ),
        Workload(
            "python",
            "Python importing numpy and sqlite3, three times",
            lambda r: ["sh", "-c", f"for i in 1 2 3; do {_python()} -c 'import numpy, sqlite3' || exit; done"],
            _nothing,
            _nothing,
            _exit_zero,
            1.07,
            1.05,
        ),
        Workload(
            "git",
            "git clone and git log -p of a local repository",
            lambda r: ["sh", "-c", "git clone -q --no-hardlinks origin clone && git -C clone log -p >log.txt"],
            _repository,
            _remove("clone", "log.txt"),
            _exit_zero,
            1.12,
            1.08,
        ),
        Workload(
            "find",
            "find over 20,000 files with stat, three times",
            lambda r: [
                "sh",
                "-c",
                "for i in 1 2 3; do find tree -type f -size +0 -printf '%s %p\\n' >found.txt || exit; done",
            ],
            lambda r: _tree(r, "tree", 20000, 200, 64),
            _remove("found.txt"),
            _exit_zero,
            1.12,
            1.10,
        ),
        Workload(
            "grep",
            "grep -r over 20,000 files",
            lambda r: ["sh", "-c", "grep -rc 'file 19999' tree >counts.txt"],
            lambda r: _tree(r, "tree", 20000, 200, 64),
            _remove("counts.txt"),
            _exit_zero,
            1.12,
            1.10,
        ),
        Workload(
            "true",
            "500 x /bin/true from a shell",
            lambda r: ["sh", "-c", TRUE_LOOP],
            _nothing,
            _nothing,
            _exit_zero,
            1.20,
            1.10,
        ),
        Workload(
            "cat",
            "500 x /bin/cat of an empty file from a shell",
            lambda r: ["sh", "-c", CAT_LOOP],
            lambda r: (r / "file").touch(),
            _nothing,
            _exit_zero,
        ),
        Workload(
            "dlopen",
            "50 starts of a program that loads a library by dlopen",
            lambda r: ["sh", "-c", LOADER_LOOP],
            _loader,
            _nothing,
            _exit_zero,
        ),
        Workload(
            "compute",
            "a program that computes (numpy)",
            lambda r: [
                _python(),
                "-c",
                "import numpy as n; a=n.random.default_rng(1).random((700,700))\nfor _ in range(30): a=(a@a)/700",
            ],
            _nothing,
            _nothing,
            _exit_zero,
            1.01,
            1.01,
        ),
        _micro_load("getppid", None, None),
        _micro_load("read", None, None),
        _micro_load("write", None, None),
        _micro_load("open", 1.10, 1.05),
        _micro_load("stat", 1.20, 1.10),
        *notified.WORKLOADS,
    )
}


def lacking(name: str) -> str | None:
    """Returns the reason why a workload cannot run here, or `None`."""
    programs = ({"make": ("make", "gcc"), "git": ("git",), "dlopen": ("gcc",)} | notified.NEEDS).get(name, ())
    missing = next((program for program in programs if not shutil.which(program)), None)
    if missing is None and name in ("python", "compute"):
        has = subprocess.run([_python(), "-c", "import numpy"], capture_output=True).returncode == 0
        return None if has else f"{_python()} lacks numpy (Debian package python3-numpy)"
    return f"{missing} is not installed" if missing else None


PROMISED = ("make", "tar", "cp", "python", "git", "find", "grep", "true")
"""The workloads of the promised geometric mean."""

SUITES: dict[str, tuple[str, ...]] = {
    "promises": PROMISED,
    "ci": PROMISED,
    "calls": ("call-getppid", "call-read", "call-write", "call-open", "call-stat"),
    "notified": tuple(w.name for w in notified.WORKLOADS),
    "all": tuple(WORKLOADS),
}
