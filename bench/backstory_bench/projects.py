"""Real programs that are built many times: sources of Debian 12, each pinned by its digest.

A project is unpacked and configured once. Before each build the program changes a file that all
units include. So everything is compiled again, and no two builds make the same versions. Outputs of
the earlier build are removed if a tool would read them, as `ar` does. Otherwise the ancestry of the
hundredth build would contain all builds before it. Each build writes digests of its outputs into
two result files of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

POOL = "http://deb.debian.org/debian/pool/main"


@dataclass(frozen=True)
class Source:
    """An archive in Debian's pool."""

    path: str
    sha256: str

    def fetch(self, downloads: Path) -> Path:
        """Returns the archive, and downloads it if it is missing. Checks its digest."""
        archive = downloads / Path(self.path).name
        if not archive.exists():
            part = archive.with_suffix(".part")
            with urllib.request.urlopen(f"{POOL}/{self.path}", timeout=60) as answer, part.open("wb") as out:
                shutil.copyfileobj(answer, out)
            part.rename(archive)
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != self.sha256:
            raise ValueError(f"{archive} has the digest {found}, not {self.sha256}: remove it")
        return archive


LUA = Source("l/lua5.4/lua5.4_5.4.4.orig.tar.gz", "164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61")
ZLIB = Source(
    "z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2", "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1"
)
HELLO = Source("h/hello/hello_2.10.orig.tar.gz", "31e066137a962676e89f69d1b65382de95a7ef7d914b8cb956f41ea72e0f516b")


@dataclass(frozen=True)
class Project:
    """The way to build one program."""

    name: str
    needs: tuple[str, ...]
    """Programs that the build needs."""
    source: Source | None
    configure: Callable[[Path], list[str] | None]
    """The command that prepares the unpacked tree, recorded like a build; `None` if not needed."""
    changed: Callable[[Path], Path]
    """The file that is changed before each build."""
    comment: str
    """The start of a comment line in that file."""
    build: Callable[[Path], str]
    """The shell command of the build, run in the project's directory."""
    results: tuple[str, ...]
    """The files that are digested after the build, relative to the project's directory."""

    def missing(self) -> str | None:
        """Returns a needed program that is not installed, or `None`."""
        return next((need for need in self.needs if not shutil.which(need)), None)

    def unpack(self, home: Path, downloads: Path) -> None:
        """Unpacks the sources into `home`, which must not exist."""
        part = home.with_name(home.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        if self.source is None:
            part.mkdir(parents=True)
        else:
            with tarfile.open(self.source.fetch(downloads)) as archive:
                # Python has the filter since 3.11.4. Earlier ones ignore the attribute.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(part)
            (top,) = part.iterdir()
            for entry in top.iterdir():
                entry.rename(part / entry.name)
            top.rmdir()
        part.rename(home)

    def change(self, home: Path, number: int) -> None:
        """Changes the sources so that build `number` differs from all others."""
        path = self.changed(home)
        mark = f"{self.comment} build "
        lines = [line for line in path.read_text().splitlines() if not line.startswith(mark)]
        path.write_text("\n".join([*lines, f"{mark}{number}", ""]))

    def command(self, results: Path, number: int) -> list[str]:
        """Returns a command that builds, and writes digests of the outputs into new files."""
        digests = [
            f"sha256sum {result} >{results}/{self.name}-{number:06d}-{Path(result).name}.sum" for result in self.results
        ]
        return ["sh", "-c", " && ".join([self.build(Path()), *digests])]


def _cmake_lua(home: Path) -> list[str]:
    (home / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.5)\nproject(lua C)\nfile(GLOB units src/*.c)\n"
        "list(FILTER units EXCLUDE REGEX luac?.c$)\nadd_library(core STATIC ${units})\n"
        "add_executable(lua src/lua.c)\nadd_executable(luac src/luac.c)\n"
        "target_link_libraries(lua core m)\ntarget_link_libraries(luac core m)\n"
    )
    return ["cmake", "-S", ".", "-B", "out", "-DCMAKE_BUILD_TYPE=Debug"]


MODULES = 12


def _cargo(home: Path) -> None:
    (home / "src").mkdir()
    (home / "Cargo.toml").write_text(
        '[package]\nname = "tool"\nversion = "0.1.0"\nedition = "2021"\n[lib]\npath = "src/lib.rs"\n'
    )
    names = [f"part{i:02d}" for i in range(MODULES)]
    for i, name in enumerate(names):
        (home / f"src/{name}.rs").write_text(f"pub fn value(x: u64) -> u64 {{ x.rotate_left({i + 1}) ^ {i} }}\n")
    (home / "src/lib.rs").write_text("".join(f"pub mod {name};\n" for name in names))
    folded = "".join(f"x = tool::{name}::value(x);" for name in names)
    (home / "src/main.rs").write_text(f'fn main() {{ let mut x = 1u64; {folded} println!("{{x}}"); }}\n')


PROJECTS: tuple[Project, ...] = (
    Project(
        "lua",
        ("make", "gcc", "ar"),
        LUA,
        lambda _: None,
        lambda home: home / "src/luaconf.h",
        "//",
        lambda _: "make -s -C src clean && make -s -C src liblua.a lua luac CFLAGS=-O0 'SYSLIBS=-ldl -Wl,-E'",
        ("src/lua", "src/luac"),
    ),
    Project(
        "zlib",
        ("make", "gcc", "ar"),
        ZLIB,
        lambda _: ["./configure", "--static"],
        lambda home: home / "zconf.h",
        "//",
        lambda _: "rm -f libz.a && make -s CFLAGS=-O0 libz.a",
        ("libz.a",),
    ),
    Project(
        "hello",
        ("make", "gcc", "ar", "perl"),
        HELLO,
        lambda _: ["./configure", "-q"],
        lambda home: home / "config.h",
        "//",
        lambda _: "make -s CFLAGS=-O0",
        ("hello", "lib/libhello.a"),
    ),
    Project(
        "lua-cmake",
        ("cmake", "make", "gcc", "ar"),
        LUA,
        _cmake_lua,
        lambda home: home / "src/luaconf.h",
        "//",
        lambda _: "cmake --build out",
        ("out/lua", "out/luac"),
    ),
    Project(
        "tool-cargo",
        ("cargo",),
        None,
        lambda _: None,
        lambda home: home / "src/part00.rs",
        "//",
        lambda _: "rm -rf target && CARGO_INCREMENTAL=0 cargo build --offline -q",
        ("target/debug/tool",),
    ),
)


def configured(project: Project, home: Path, downloads: Path, record: Callable[[list[str], Path], None]) -> None:
    """Unpacks and configures the project, unless that was done before.

    `record` runs a command in a directory.
    """
    done = home / ".configured"
    if done.exists():
        return
    shutil.rmtree(home, ignore_errors=True)
    project.unpack(home, downloads)
    if project.source is None:
        _cargo(home)
    command = project.configure(home)
    if command:
        record(command, home)
    done.touch()


def environment() -> dict[str, str]:
    """Returns the environment of all builds: English messages, and no settings of the caller."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("BACKSTORY", "MAKE", "CARGO_TARGET"))}
    return keep | {"LC_ALL": "C.UTF-8"}


def run(command: list[str], home: Path, log: Path) -> None:
    """Runs one command. Its output is shown only if it fails."""
    with log.open("wb") as out:
        status = subprocess.run(command, cwd=home, env=environment(), stdout=out, stderr=subprocess.STDOUT).returncode
    if status:
        said = log.read_text(errors="replace")[-800:]
        raise RuntimeError(f"status {status} of {' '.join(command)} in {home}:\n{said}")
