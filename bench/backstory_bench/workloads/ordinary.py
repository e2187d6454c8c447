"""Ordinary work, in which nothing is an attack: builds, test suites, package installs and tools.

The command `hunt` records these beside workloads of the matrix, to which they do not belong. They
are small, so that a thousand runs are soon recorded, and none needs a network.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from . import small_projects
from .base import Instance, Need, module, program, python, tree

BUILDS, SUITES, INSTALLS, TOOLS = "Builds", "Test suites", "Package installs", "Tools"

_GO = 'export GOCACHE="$PWD/cache" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0'
_CARGO = 'export CARGO_TARGET_DIR="$PWD/target"'
_NODE = program("node", "nodejs")
_COMPILER = (program("gcc"), program("make"))
_CMAKE = "cmake -S . -B build >cmake.txt; cmake --build build >>cmake.txt"


def _then(prepare: Callable[[Path], None], script: str) -> Callable[[Path], None]:
    """Prepares, and then runs a script that is not recorded."""

    def both(root: Path) -> None:
        prepare(root)
        subprocess.run(["sh", "-ec", script], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=True)

    return both


def _package(root: Path) -> None:
    script = "package/usr/bin/words"
    control = (
        "Package: words\nVersion: 1.0\nArchitecture: all\nMaintainer: Bench <bench@localhost>\nDescription: words\n"
    )
    small_projects.write(root, {"package/DEBIAN/control": control, script: "#!/bin/sh\nwc -w\n"})
    (root / script).chmod(0o755)
    (root / "package/DEBIAN").chmod(0o755)
    tree(root, "package/usr/share/doc/words", 20, 1000)


def _histories(root: Path) -> None:
    small_projects.write(root, {f"in/{name}.txt": f"{name}\n" * 20 for name in ("one", "two", "three")})


def _trees(root: Path) -> None:
    tree(root, "tree", 300, 1500)
    shutil.copytree(root / "tree", root / "copy")
    (root / "copy/d000/f00007.txt").write_text("changed\n")


def _logs(root: Path) -> None:
    small_projects.write(root, {f"logs/service{n:02d}.log": f"request {n}\n" * 200 for n in range(30)})


def _build(
    name: str, what: str, body: str, needs: tuple[Need, ...], prepare: Callable[[Path], None], *clean: str
) -> Instance:
    return Instance(BUILDS, name, what, body, needs, prepare, clean)


def _suite(
    name: str, what: str, body: str, needs: tuple[Need, ...], prepare: Callable[[Path], None], before: str = ""
) -> Instance:
    return Instance(SUITES, name, what, body, needs, prepare, ("suite.txt",), before=before)


_BUILDS = [
    _build(
        "make-install",
        "make of a library and a program in C, and its installation in a directory",
        'make -s -j2; make -s install DESTDIR="$PWD/image"',
        _COMPILER,
        small_projects.c_project,
        *("*.o", "libtext.a", "words", "version.h", "image"),
    ),
    _build(
        "cmake",
        "cmake of the same project, and its build",
        _CMAKE,
        (program("cmake"), *_COMPILER),
        small_projects.c_project,
        *("build", "cmake.txt"),
    ),
    Instance(
        BUILDS,
        "cargo",
        "cargo build of a small program",
        "cargo build -q --offline; target/debug/words >words.txt",
        (program("cargo"), program("gcc")),
        small_projects.rust_project,
        ("target", "words.txt"),
        before=_CARGO,
    ),
    Instance(
        BUILDS,
        "go",
        "go build of a small program that has changed",
        "printf 'package main\\n\\nconst build = %d\\n' $$ >build.go; go build -o words .; ./words >words.txt",
        (program("go", "golang-go"),),
        _then(small_projects.go_project, f"{_GO}; go build -o words ."),
        ("words", "words.txt"),
        before=_GO,
    ),
    _build(
        "deb",
        "a Debian package of 21 files, packed and unpacked",
        "dpkg-deb --root-owner-group --build package words.deb >deb.txt; dpkg-deb --info words.deb >>deb.txt;"
        " dpkg-deb -x words.deb unpacked",
        (program("dpkg-deb", "dpkg"),),
        _package,
        *("words.deb", "deb.txt", "unpacked"),
    ),
]

_INSTALLS = [
    Instance(
        INSTALLS,
        "pip",
        "pip install of two local wheels, and a start of the program",
        f"{python()} -m pip install -q --disable-pip-version-check --no-index --find-links wheels --target site"
        f" words_cli; PYTHONPATH=site {python()} -c 'import words_cli; words_cli.main()' >out.txt",
        (module("pip"),),
        small_projects.wheels,
        ("site", "out.txt"),
    ),
    Instance(
        INSTALLS,
        "npm",
        "npm install of a local package with an install script, and a start of the program",
        "(cd project; npm install --silent --offline --no-audit --no-fund; node main.js >out.txt)",
        (program("npm"), _NODE),
        small_projects.npm_project,
        ("project/node_modules", "project/package-lock.json", "project/out.txt"),
        before='export npm_config_cache="$PWD/cache" npm_config_update_notifier=false',
    ),
]

_SUITES = [
    _suite(
        "make-check",
        "make check: 20 tests of a program in C",
        "make -s check >suite.txt",
        _COMPILER,
        _then(small_projects.c_project, "make -s"),
    ),
    _suite(
        "ctest",
        "ctest: 10 tests of a program in C",
        "(cd build; ctest) >suite.txt",
        (program("cmake"), *_COMPILER),
        _then(small_projects.c_project, _CMAKE),
    ),
    _suite(
        "cargo-test",
        "cargo test of a library that has changed",
        "touch src/lib.rs; cargo test -q --offline --lib --tests >suite.txt",
        (program("cargo"), program("gcc")),
        small_projects.rust_project,
        _CARGO,
    ),
    _suite(
        "go-test",
        "go test of two packages",
        "go test -count=1 ./... >suite.txt",
        (program("go", "golang-go"),),
        _then(small_projects.go_project, f"{_GO}; go test ./..."),
        _GO,
    ),
    _suite(
        "pytest",
        "pytest: 35 tests",
        f"{python()} -m pytest -q >suite.txt",
        (module("pytest"),),
        small_projects.python_project,
    ),
    _suite(
        "unittest",
        "unittest of Python",
        f"{python()} -m unittest discover -s unit -t . 2>suite.txt",
        (),
        small_projects.python_project,
    ),
    _suite(
        "shell",
        "12 scripts of tests that call the tools of the shell",
        'for test in t/*-*.sh; do sh "$test"; done >suite.txt',
        (program("diff", "diffutils"), program("awk", "mawk")),
        small_projects.shell_suite,
    ),
    _suite(
        "prove",
        "prove: six scripts of tests in Perl",
        "prove -q t >suite.txt",
        (program("prove", "perl"),),
        small_projects.perl_suite,
    ),
    _suite(
        "node",
        "the test runner of Node.js: 20 tests",
        "node --test >suite.txt",
        (_NODE,),
        small_projects.node_tests,
    ),
]

_GIT = """
rm -rf work; git init -q -b main work; (
cd work
git config user.name Bench; git config user.email bench@localhost
printf '#!/bin/sh\\nexec git diff --cached --check\\n' >.git/hooks/pre-commit
chmod +x .git/hooks/pre-commit
cp ../in/*.txt .; git add .; git commit -qm first
git checkout -qb topic; echo more >>one.txt; git commit -qam topic
git checkout -q main; echo other >>two.txt; git commit -qam other
git merge -q -m merged topic
git log --stat >../log.txt
git format-patch -q -1 -o .. topic
git gc -q
)"""

_SEARCH = """
find tree -name '*.txt' -print0 | xargs -0 grep -l lazy | sort >found.txt
grep -rn 'file 7' tree | awk -F: '{ n[$1]++ } END { for (f in n) print f, n[f] }' | sort >counts.txt
find tree -type f -exec sha256sum {} + >sums.txt
sed 's/lazy/busy/' tree/d000/f00001.txt | tr a-z A-Z | cut -c 1-20 | uniq -c >changed.txt
diff -rq tree copy >diff.txt || [ $? = 1 ]"""

_ROTATE = """
for log in logs/*.log; do mv "$log" "$log.1"; echo started >"$log"; gzip -f "$log.1"; done"""

_TOOLS = [
    Instance(
        TOOLS,
        "git-work",
        "git: commits with a hook, a branch, a merge, a patch and gc",
        _GIT,
        (program("git"),),
        _histories,
        ("work", "log.txt", "*.patch"),
    ),
    Instance(
        TOOLS,
        "search",
        "find, grep, awk, sort, sha256sum and diff over 300 files",
        _SEARCH,
        (program("awk", "mawk"), program("diff", "diffutils"), program("xargs", "findutils")),
        _trees,
        ("found.txt", "counts.txt", "sums.txt", "changed.txt", "diff.txt"),
    ),
    Instance(
        TOOLS,
        "rotate",
        "30 logs renamed, begun again and compressed",
        _ROTATE,
        (program("gzip"),),
        _logs,
    ),
    Instance(
        TOOLS,
        "gzip",
        "40 files compressed in place, and the next time decompressed",
        "if [ -e data/d000/f00000.txt ]; then gzip -r data; else gunzip -r data; fi",
        (program("gzip"),),
        lambda root: tree(root, "data", 40, 2000),
    ),
]

INSTANCES = [*_BUILDS, *_SUITES, *_INSTALLS, *_TOOLS]
"""The workloads that do not belong to the matrix."""

OF_MATRIX = (
    "Compile w/gcc/small-files",
    "Compile w/latex/paper",
    "Container build/umoci",
    "HTTP srv/client/curl",
    "HTTP srv/client/wget",
    "Tar Archive/gzip",
    "Tar Unarchive/gzip",
    "Utils/ls",
    "Utils/grep",
    "Utils bash/shell-echo",
    "VCS checkout/git",
    "cp/small",
    "Database/transactions",
    "Computing/sqlite",
    "Client starts/git",
    "Client starts/python",
)
"""The short workloads of the matrix that are ordinary work, too."""

_KINDS = {
    SUITES: "suite",
    **dict.fromkeys((BUILDS, "Compile w/gcc", "Compile w/latex", "Compile w/Spack"), "build"),
    **dict.fromkeys(("Go build", "Container build"), "build"),
    INSTALLS: "install",
}


def kind(instance: Instance) -> str:
    """Returns the kind of a workload: build, suite, install or tool."""
    return _KINDS.get(instance.group, "tool")
