"""Tar Archive and Tar Unarchive: a source tree, uncompressed, and with gzip, bzip2, pigz,
pbzip2.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from .base import Instance, program, tree, tree_files

FILES, SIZE = 800, 3000
COMPRESSORS: tuple[tuple[str, str], ...] = (
    ("archive", ""),
    ("gzip", "gzip"),
    ("bzip2", "bzip2"),
    ("pigz", "pigz"),
    ("pbzip2", "pbzip2"),
)


def _pack(how: str) -> str:
    use = f"--use-compress-program={how} " if how else ""
    return f"tar --sort=name --mtime=@0 {use}-cf all.tar tree"


def _archive(name: str, how: str) -> Instance:
    return Instance(
        "Tar Archive",
        name,
        f"tar of {FILES} files with {how or 'no compression'}",
        _pack(how),
        (program("tar"), *((program(how),) if how else ())),
        lambda root: tree(root, "tree", FILES, SIZE),
        ("all.tar",),
        ("all.tar",) if how != "pigz" else (),
        truth=lambda root: {*tree_files(root, "tree"), str(root / "all.tar")},
    )


def _unarchive(name: str, how: str) -> Instance:
    use = f"--use-compress-program={how} " if how else ""

    def prepare(root: Path) -> None:
        tree(root, "tree", FILES, SIZE)
        subprocess.run(["sh", "-c", _pack(how)], cwd=root, check=True)

    return Instance(
        "Tar Unarchive",
        "unarchive" if name == "archive" else name,
        f"untar of {FILES} files with {how or 'no compression'}",
        f"rm -rf out; mkdir out; tar {use}-xf all.tar -C out",
        (program("tar"), *((program(how),) if how else ())),
        prepare,
        ("out",),
        ("out",),
        truth=lambda root: {*tree_files(root, "out"), str(root / "all.tar")},
    )


INSTANCES = [make(name, how) for make in (_archive, _unarchive) for name, how in COMPRESSORS]
