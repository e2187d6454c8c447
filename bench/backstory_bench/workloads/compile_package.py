"""Compile w/Spack: eight packages, configured and compiled from Debian's sources.

Each builds only some of its targets, so that it takes a minute at most.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..projects import HELLO, LUA, ZLIB, Project, Source
from .base import Instance, program

GROUP = "Compile w/Spack"
BZIP2 = Source("b/bzip2/bzip2_1.0.8.orig.tar.gz", "ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269")
GIT = Source("g/git/git_2.39.5.orig.tar.xz", "c58da92c378df4a986ca33266897a7397e86c22ee266a284d8c2432c39066b59")
HDF5 = Source(
    "h/hdf5/hdf5_1.10.8%2brepack1.orig.tar.gz", "7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31"
)
PERL = Source("p/perl/perl_5.36.0.orig.tar.xz", "0f386dccbee8e26286404b2cca144e1005be65477979beb9b1ba272d4819bcf0")
PYTHON = Source(
    "p/python3.11/python3.11_3.11.2.orig.tar.gz", "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849"
)


def downloads() -> Path:
    """Returns the directory that stores downloaded archives between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "backstory-bench"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _package(name: str, source: Source, make: str, made: str, what: str, *more: str) -> Instance:
    def prepare(root: Path) -> None:
        project = Project(name, (), source, lambda _: None, lambda home: home, "#", lambda _: "", ())
        project.unpack(root / "source", downloads())

    return Instance(
        GROUP,
        name,
        f"{name} from source: {what}",
        f"rm -rf build; cp -a source build; (cd build; {make}) >make.txt 2>&1 || {{ tail -3 make.txt; exit 1; }}; test -e build/{made}",
        (program("gcc"), program("make"), *(program(need) for need in more)),
        prepare,
        ("build", "make.txt"),
        fixed=True,
    )


_CONFIGURE = "./configure -q --disable-dependency-tracking"
INSTANCES = [
    _package(
        "python",
        PYTHON,
        "./configure -q; make -s Programs/_freeze_module",
        "Programs/_freeze_module",
        "configure and the core",
    ),
    _package(
        "hdf5",
        HDF5,
        f"{_CONFIGURE} --disable-hl; make -s -C src H5timer.lo H5checksum.lo H5VM.lo",
        "src/H5timer.lo",
        "configure and a few units",
    ),
    _package(
        "git",
        GIT,
        "make -s NO_CURL=1 NO_OPENSSL=1 NO_GETTEXT=1 NO_EXPAT=1 xdiff/lib.a reftable/libreftable.a",
        "xdiff/lib.a",
        "two of its libraries",
    ),
    _package("perl", PERL, "./Configure -des -Uusedl; make -s miniperl", "miniperl", "configure and miniperl"),
    _package("lua", LUA, "make -s -C src linux", "src/lua", "the interpreter"),
    _package("zlib", ZLIB, "./configure --static; make -s libz.a", "libz.a", "configure and the library"),
    _package("bzip2", BZIP2, "make -s bzip2", "bzip2", "the program"),
    _package("hello", HELLO, f"{_CONFIGURE}; make -s lib/libhello.a", "lib/libhello.a", "configure and its library"),
]
